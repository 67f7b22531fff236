# SPDX-License-Identifier: Apache-2.0
"""A minute of rest. Only with POSTERN_LONG=1."""

from __future__ import annotations

import time

from .conftest import Starter
from .deadline import FACTOR

IDLE_S = 60.0


def test_a_connection_at_rest_is_closed_after_60_s(start: Starter) -> None:
    broker = start()
    with broker.client(timeout_s=IDLE_S + 10) as client, broker.client() as other:
        assert client.ask("/").status == 200
        begun = time.monotonic()
        assert client.rest() == b""
        assert IDLE_S - 0.5 <= time.monotonic() - begun <= IDLE_S + 1.0 * FACTOR
        # a request within the minute would have kept it
        assert other.rest().startswith(b"HTTP/1.1 408 ")


def test_a_connection_that_is_used_is_kept(start: Starter) -> None:
    broker = start()
    with broker.client() as client:
        for _ in range(3):
            assert client.ask("/").status == 200
            time.sleep(IDLE_S / 2)
        assert client.ask("/").status == 200


def test_counts_of_a_session_are_written_once_a_minute(start: Starter) -> None:
    broker = start()
    assert broker.get("/").status == 200
    begun = time.monotonic()
    while not broker.audit_of("session.counts"):
        assert time.monotonic() - begun < IDLE_S + 5
        time.sleep(0.1)
    line = broker.audit_of("session.counts")[0]
    assert line["requests"] == 1 and time.monotonic() - begun > IDLE_S - 1
