# SPDX-License-Identifier: Apache-2.0
"""What was asked: one record a request."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass, field
from time import monotonic
from time import time as wall
from typing import Any


@dataclass
class Call:
    """One request; `status` and `outcome` are set just before the answer's first byte."""

    kind: str
    method: str
    path: str  # raw target
    headers: dict[str, str]  # names in lower case
    body: Any  # JSON value, form as a dict, or text
    connection: int
    tls: bool
    time: float = field(default_factory=wall)
    mono: float = field(default_factory=monotonic)
    status: int | None = None
    answered_mono: float | None = None  # when status and outcome were set
    outcome: str = ""  # answered, truncated, hung, reset, dropped
    principal: str | None = None  # who the credential spoke for
    note: str = ""  # why it was refused; never on the wire

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON values."""
        return asdict(self)


class Recorder:
    """All calls, in order of arrival. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._calls: list[Call] = []

    def add(self, call: Call) -> None:
        """Record an arrival."""
        with self._changed:
            self._calls.append(call)
            self._changed.notify_all()

    def finish(self, call: Call, status: int | None, outcome: str) -> None:
        """Record what is about to be answered."""
        with self._changed:
            call.status, call.outcome, call.answered_mono = status, outcome, monotonic()
            self._changed.notify_all()

    def snapshot(self, kind: str | None = None) -> list[Call]:
        """The calls so far, of one kind or all."""
        with self._changed:
            return [call for call in self._calls if kind in (None, call.kind)]

    def forget(self) -> None:
        """Begin anew."""
        with self._changed:
            self._calls.clear()

    def wait_for(self, kind: str, n: int, timeout: float, *, answered: bool) -> list[Call]:
        """Wait until n calls of a kind arrived (or were answered)."""
        def seen() -> list[Call]:
            return [call for call in self._calls
                    if call.kind == kind and (call.outcome or not answered)]
        with self._changed:
            if not self._changed.wait_for(lambda: len(seen()) >= n, timeout):
                raise TimeoutError(f"{len(seen())} of {n} {kind} calls within {timeout} s")
            return seen()
