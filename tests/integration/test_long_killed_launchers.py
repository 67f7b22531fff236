# SPDX-License-Identifier: Apache-2.0
"""What a killed launcher had asked the engine for comes late, or not at all: until its reaper has ended, nothing."""

from __future__ import annotations

import signal
import time

import pytest

from .launch import Place

# Of the issue: a killed launcher leaves nothing for longer.
LEFT_S = 2.0


@pytest.mark.parametrize("attach, moments_ms", [("gateway", range(0, 1300, 100)), ("inside", range(100, 2500, 400))],
                         ids=["gateway", "inside"])
def test_nothing_comes_after_launchers_that_were_killed_at_any_moment(place: Place, attach: str,
                                                                      moments_ms: range) -> None:
    place.attach = attach
    for after_ms in moments_ms:
        run = place.start("sleep", "60")
        time.sleep(after_ms / 1000)  # the moment is what is tested
        run.signal(signal.SIGKILL)
        assert run.wait().status == -signal.SIGKILL
    place.stays_clean(LEFT_S)
