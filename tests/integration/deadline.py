# SPDX-License-Identifier: Apache-2.0
"""Deadlines, and looking again until something holds. No test sleeps to let time pass."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# A broker under valgrind or the like is slower.
FACTOR = 10.0 if os.environ.get("POSTERN_WRAP") else 1.0
STEP_S = 0.005


def allowed(seconds: float) -> float:
    """So long, with the patience that a wrapped broker needs."""
    return seconds * FACTOR


def eventually(what: str, look: Callable[[], T | None], timeout_s: float = 5.0) -> T:
    """The first true value that `look` gives; AssertionError when none came in time."""
    end = time.monotonic() + allowed(timeout_s)
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() >= end:
            raise AssertionError(f"not within {allowed(timeout_s):g} s: {what}")
        time.sleep(STEP_S)
