# SPDX-License-Identifier: Apache-2.0
"""One stand-in for all of its own tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .client import OTHER
from .standin import Standin


@pytest.fixture(scope="module")
def shared() -> Iterator[Standin]:
    with Standin() as standin:
        standin.add_account(OTHER)
        yield standin


@pytest.fixture
def google(shared: Standin) -> Iterator[Standin]:
    yield shared
    shared.clear()
    shared.forget_calls()
    shared.clock_offset_s = 0.0
