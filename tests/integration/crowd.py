# SPDX-License-Identifier: Apache-2.0
"""Many clients at once, in one thread."""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Iterable

from .deadline import allowed
from .http1 import Broken, Reply, parse


class Member:
    """One client: connects, sends, and collects one answer."""

    def __init__(self, address: tuple[str, int], whole: bytes) -> None:
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.sock.setblocking(False)
        self.sock.connect_ex(address)
        self.reply: Reply | None = None
        self.fault: str | None = None
        self._left = whole
        self._got = b""

    @property
    def is_sent(self) -> bool:
        """Whether the request is on its way."""
        return not self._left

    @property
    def is_done(self) -> bool:
        """Whether there is an answer, or will be none."""
        return self.reply is not None or self.fault is not None

    def leave(self) -> None:
        """Close, whatever is under way."""
        self.sock.close()
        self.fault = "left"

    def step(self, mask: int) -> None:
        """Send or receive what can be."""
        try:
            if mask & selectors.EVENT_WRITE and self._left:
                self._left = self._left[self.sock.send(self._left):]
            if mask & selectors.EVENT_READ:
                data = self.sock.recv(65536)
                self._got += data
                found = parse(self._got)
                if found:
                    self.reply = found[0]
                elif not data:
                    self.fault = f"closed after {self._got[:40]!r}"
        except BlockingIOError:
            pass
        except (OSError, Broken) as err:
            self.fault = repr(err)


class Crowd:
    """A context manager that closes what is left of it."""

    def __init__(self, address: tuple[str, int], whole: bytes, count: int) -> None:
        self.members = [Member(address, whole) for _ in range(count)]

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            with contextlib.suppress(OSError):
                member.sock.close()

    def run(self, *, until_sent: bool = False, timeout_s: float = 20.0,
            members: Iterable[Member] | None = None) -> None:
        """Until each has sent its request, or has its answer."""
        end = time.monotonic() + allowed(timeout_s)
        left = [member for member in members or self.members if not member.is_done]
        with selectors.DefaultSelector() as selector:
            for member in left:
                selector.register(member.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, member)
            while len(selector.get_map()):
                if time.monotonic() > end:
                    raise AssertionError(f"{len(selector.get_map())} clients are not done")
                for key, mask in selector.select(0.1):
                    member = key.data
                    member.step(mask)
                    if member.is_done or (until_sent and member.is_sent):
                        selector.unregister(member.sock)
                    elif member.is_sent:
                        selector.modify(member.sock, selectors.EVENT_READ, member)
