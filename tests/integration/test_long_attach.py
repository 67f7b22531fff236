# SPDX-License-Identifier: Apache-2.0
"""The deadlines of an attachment that take their time."""

from __future__ import annotations

import time

from .broker import Broker
from .deadline import allowed
from .doors import Door, Inside, Sandbox
from .namespaces import needs_namespaces
from .sessions import closed_with

pytestmark = needs_namespaces


def test_a_ticket_that_nobody_shows_ends_its_session_after_60_s(offline: Broker) -> None:
    begun = time.monotonic()
    with Inside(offline) as lease, Sandbox() as sandbox:
        lease.client.sock.settimeout(allowed(75))
        assert lease.error() == ("conflict", "no door came with the ticket within 60 s")
        assert 59.5 < time.monotonic() - begun < allowed(65)
        assert closed_with(offline, lease.session)["reason"] == "door_late"
        with Door(lease.door["dir"], sandbox) as door:
            door.say(f"T {lease.door['ticket']}")
            assert door.hear() == "no the ticket is unknown, used, or older than 60 s"


def test_a_door_that_does_not_come_again_ends_its_session_after_15_s(offline: Broker) -> None:
    begun = time.monotonic()
    with Inside(offline, door={"secret": "0" * 32}) as lease:
        lease.client.sock.settimeout(allowed(30))
        assert lease.error() == ("conflict", "no door came with the secret within 15 s")
        assert 14.5 < time.monotonic() - begun < allowed(20)
        assert closed_with(offline, lease.session)["reason"] == "door_late"
