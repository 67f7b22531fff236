# SPDX-License-Identifier: Apache-2.0
"""What a test looks at: the broker's counters, and the tokens that reached the model."""

from __future__ import annotations

import hashlib
from typing import Any

from tests.google.record import Call
from tests.google.standin import Standin
from tests.integration.broker import Broker
from tests.integration.deadline import eventually

from .program import Outcome, Program

PATIENCE_S = 20.0
MINT = "generateAccessToken"
MODEL = ("generateContent", "streamGenerateContent", "rawPredict", "streamRawPredict",
         "listObjects")


def endpoint(broker: Broker, host: str | None = None) -> str:
    """HOST:PORT of its endpoint."""
    address, port = broker.address()
    return f"{host or address}:{port}"


class Counters:
    """What a broker counted since this was made."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._before = self._read()

    def _read(self) -> dict[str, Any]:
        counters: dict[str, Any] = self._broker.status()["counters"]
        return counters

    @property
    def since(self) -> dict[str, int]:
        """By the names of the status."""
        return {name: count - self._before[name] for name, count in self._read().items()}


def first_good(program: Program) -> Outcome:
    """What comes of a call once the client has got over a failure."""
    if not program.facts.pause_s:
        return program.call()

    def call() -> Outcome | None:
        outcome = program.call()
        return outcome if outcome.text else None
    return eventually("a call that succeeds", call, program.facts.pause_s + PATIENCE_S)


def calls_of_the_model(google: Standin) -> list[Call]:
    """All of them, in order."""
    return [call for call in google.calls if call.kind in MODEL]


def tokens_at_the_model(google: Standin) -> list[str]:
    """The fingerprint of each call's token, in order. Every call must have been accepted."""
    calls = calls_of_the_model(google)
    assert [call.status for call in calls] == [200] * len(calls), [call.note for call in calls]
    assert {call.principal for call in calls} <= {google.account}
    return [hashlib.sha256(call.headers["authorization"].encode()).hexdigest()[:16]
            for call in calls]
