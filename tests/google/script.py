# SPDX-License-Identifier: Apache-2.0
"""Scripted steps, and holds: what a test makes the next request meet."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

KINDS = frozenset({
    "token", "generateAccessToken", "testIamPermissions",
    "sts", "subjectToken", "metadataToken", "metadataEmail", "metadataUniverse",
    "generateContent", "streamGenerateContent", "countTokens",
    "rawPredict", "streamRawPredict", "listObjects", "other",
})


@dataclass(frozen=True)
class Step:
    """What one request meets. Nothing set: the normal answer.

    A status of 400 and up, or a reason, or an oauth_error gives an error envelope; `html`,
    `body` and `redirect` give literal answers; the rest shapes whatever answer there is.
    """

    status: int | None = None
    reason: str | None = None  # ErrorInfo.reason
    metadata: dict[str, str] | None = None
    message: str | None = None
    oauth_error: str | None = None
    error_subtype: str | None = None
    description: str | None = None
    html: str | bool | None = None
    body: Any = None  # str, bytes, or a value to be sent as JSON
    redirect: str | None = None
    content_type: str | None = None
    headers: dict[str, str] | None = None
    retry_after: int | str | None = None
    no_date: bool = False
    close: bool = False  # Connection: close
    delay_s: float = 0.0
    life_s: float | None = None  # the token's real life, whatever was asked
    fraction_digits: int = 0  # of expireTime
    offset: str | None = None  # of expireTime, "+05:30"
    expire_time: Any = None  # literal
    expires_in: Any = None  # literal, of the token endpoint
    token_bytes: int | None = None  # length of the issued token
    missing: str | list[str] | None = None  # fields dropped from a 200
    big_body: int | None = None  # the body padded with spaces to this many bytes
    truncate_at: int | None = None  # body bytes sent, then closed
    hang_at: int | None = None  # raw bytes sent, then nothing until released
    reset: bool = False  # RST before any answer

    def __post_init__(self) -> None:
        if not 0 <= self.fraction_digits <= 9:
            raise ValueError("fraction_digits is 0 to 9")

    @classmethod
    def of(cls, value: Step | Mapping[str, Any]) -> Step:
        """A step from a step or from a mapping with the same names."""
        if isinstance(value, Step):
            return value
        unknown = set(value) - {f.name for f in fields(cls)}
        if unknown:
            raise ValueError(f"a step has no {', '.join(sorted(unknown))}")
        return cls(**value)

    @property
    def dropped(self) -> list[str]:
        """The fields to drop, as a list."""
        if self.missing is None:
            return []
        return [self.missing] if isinstance(self.missing, str) else list(self.missing)


NORMAL = Step()


def _checked(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is no kind of request; known: {', '.join(sorted(KINDS))}")
    return kind


class Script:
    """The steps and holds of every kind. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._steps: dict[str, deque[Step]] = {}
        self._always: dict[str, Step] = {}
        self._held: set[str] = set()
        self._passes: dict[str, int] = {}
        self._waiting: dict[str, int] = {}
        self._hung: dict[str, list[threading.Event]] = {}
        self._closed = False

    def add(self, kind: str, steps: list[Step]) -> None:
        """Queue steps for the next requests of a kind."""
        with self._changed:
            self._steps.setdefault(_checked(kind), deque()).extend(steps)

    def always(self, kind: str, step: Step) -> None:
        """The step of every request that finds no queued one."""
        with self._changed:
            self._always[_checked(kind)] = step

    def pending(self, kind: str) -> int:
        """How many queued steps are left."""
        with self._changed:
            return len(self._steps.get(_checked(kind), ()))

    def take(self, kind: str) -> Step:
        """The step for a request that has just arrived."""
        with self._changed:
            queue = self._steps.get(kind)
            return queue.popleft() if queue else self._always.get(kind, NORMAL)

    def clear(self, kind: str | None = None) -> None:
        """Drop steps and holds of one kind, or of all."""
        kinds = KINDS if kind is None else {_checked(kind)}
        with self._changed:
            for each in kinds:
                self._steps.pop(each, None)
                self._always.pop(each, None)
        for each in kinds:
            self.release(each)

    def hold(self, kind: str) -> None:
        """Make requests of a kind wait before anything is decided about them."""
        with self._changed:
            self._held.add(_checked(kind))

    def release(self, kind: str, n: int | None = None) -> None:
        """Let all waiting and hanging requests go on and end the hold; or let n held ones pass."""
        with self._changed:
            _checked(kind)
            if n is not None:
                self._passes[kind] = self._passes.get(kind, 0) + n
            else:
                self._held.discard(kind)
                self._passes.pop(kind, None)
                for event in self._hung.pop(kind, []):
                    event.set()
            self._changed.notify_all()

    def waiting(self, kind: str) -> int:
        """How many requests are held or hanging right now."""
        with self._changed:
            return self._waiting.get(_checked(kind), 0) + len(self._hung.get(kind, []))

    def pass_gate(self, kind: str) -> bool:
        """Wait while the kind is held. False: the stand-in closes."""
        with self._changed:
            self._waiting[kind] = self._waiting.get(kind, 0) + 1
            try:
                while kind in self._held and not self._closed:
                    if self._passes.get(kind, 0) > 0:
                        self._passes[kind] -= 1
                        break
                    self._changed.wait()
            finally:
                self._waiting[kind] -= 1
            return not self._closed

    def hang(self, kind: str) -> threading.Event:
        """An event that `release` or closing sets."""
        event = threading.Event()
        with self._changed:
            if self._closed:
                event.set()
            else:
                self._hung.setdefault(kind, []).append(event)
        return event

    def unhang(self, kind: str, event: threading.Event) -> None:
        """Forget a hanging request that is over."""
        with self._changed:
            if event in self._hung.get(kind, []):
                self._hung[kind].remove(event)

    def open(self) -> None:
        """Begin to hold again after a close."""
        with self._changed:
            self._closed = False

    def close(self) -> None:
        """Wake everything that waits; nothing waits any more."""
        with self._changed:
            self._closed = True
            for events in self._hung.values():
                for event in events:
                    event.set()
            self._hung.clear()
            self._changed.notify_all()
