# SPDX-License-Identifier: Apache-2.0
"""What a run does with a broker that does not come back."""

from __future__ import annotations

import time

from .launch import Place


def test_4_is_a_broker_that_stays_away_for_half_a_minute(place: Place) -> None:
    run = place.start("sleep", "120")
    place.running()
    place.broker.kill()
    began = time.monotonic()
    ran = run.wait(90)
    assert ran.status == 4
    assert 29 < time.monotonic() - began < 60
    assert "the broker is gone" in ran.err
    assert not place.containers() and not place.left()
