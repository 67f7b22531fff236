# SPDX-License-Identifier: Apache-2.0
"""A door as the wire wants it, and as it does not: its sockets are made inside a network namespace, its
connection to the attach socket as well. It holds no container, so that each step can be gone wrong."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from collections.abc import Iterator, Sequence

from . import leaks, procfs
from .broker import Broker
from .deadline import allowed, eventually
from .http1 import TOKEN, Client, Reply
from .namespaces import Namespace
from .sessions import Lease, listed

INSIDE, INSIDE6 = ("169.254.169.254", 80), ("fd20:ce::254", 80)
SOCK = "sock"


class Sandbox(Namespace):
    """A network namespace as a door leaves it: the metadata addresses on its loopback."""

    def __init__(self, *, ipv6: bool = True) -> None:
        super().__init__()
        self.ip("addr add 169.254.169.254/32 dev lo scope host")
        if ipv6:
            self.ip("addr add fd20:ce::254/128 dev lo nodad")

    def ask(self, target: str = TOKEN, where: tuple[str, int] = INSIDE, *, source: str | None = None,
            host: str | None = None) -> Reply:
        """One request of an agent."""
        with self.client(where, source=source) as client:
            return client.ask(target, host=host or (f"[{where[0]}]" if ":" in where[0] else where[0]))

    def client(self, where: tuple[str, int] = INSIDE, *, source: str | None = None,
               timeout_s: float = 10.0) -> Client:
        """A connection of an agent."""
        with self.entered():
            return Client(where, source=source, timeout_s=timeout_s)

    def is_refused(self) -> bool:
        """Whether nobody listens there; see sessions.is_gone() for the instant of closing."""
        try:
            self.client(timeout_s=0.04).close()
        except ConnectionRefusedError:
            return True
        except (ConnectionResetError, TimeoutError):
            pass
        return False

    def listener(self, where: tuple[str, int] = INSIDE, *, device: bytes | None = b"lo",
                 reuse_port: bool = False, listening: bool = True) -> socket.socket:
        """A listening socket as a door makes it, unless told otherwise."""
        family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
        with self.entered():
            made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if device is not None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
        made.bind(where)
        if listening:
            made.listen(128)
        return made


class Door:
    """Its connection to the attach socket."""

    def __init__(self, directory: str, place: Namespace | None = None) -> None:
        """With no place it is in the namespace of the tests, and of the broker."""
        self.sockets: list[socket.socket] = []
        with place.entered() if place else contextlib.nullcontext():
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.sock.connect(f"{directory}/{SOCK}")  # without a deadline it waits for room in the queue
        except OSError:
            self.sock.close()
            raise
        self.sock.settimeout(allowed(10))

    def __enter__(self) -> Door:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """As if it were killed."""
        self.sock.close()
        for each in self.sockets:
            each.close()

    def say(self, text: str | bytes, sockets: Sequence[socket.socket | int] = ()) -> None:
        """One message, with descriptors."""
        data = text if isinstance(text, bytes) else text.encode()
        fds = [each if isinstance(each, int) else each.fileno() for each in sockets]
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))]
        self.sock.sendmsg([data], rights if fds else [])

    def hear(self) -> str:
        """The next message; "" where the broker has closed."""
        try:
            return self.sock.recv(4096).decode("ascii")
        except ConnectionResetError:
            return ""

    def is_let_in(self, ticket: str) -> None:
        """The first contact, which must succeed."""
        self.say(f"T {ticket}")
        assert self.hear() == "go"

    def offer(self, sockets: Sequence[socket.socket]) -> str:
        """Its sockets, which are its own from here on; the answer."""
        self.sockets += sockets
        self.say("D", sockets)
        return self.hear()


class Inside(Lease):
    """A session inside, and what its launcher is told once."""

    def __init__(self, broker: Broker, **wish: object) -> None:
        super().__init__(broker.control_client(), listen=..., attach="inside", **wish)
        self.door = self.session.pop("door")
        leaks.note(value for key, value in self.door.items() if key in ("ticket", "secret"))

    def event(self) -> dict[str, object]:
        """The second line."""
        line: dict[str, object] = json.loads(self.line())
        return line

    def error(self) -> tuple[str, str]:
        """Code and message of the second line, after which the stream ends."""
        error = self.event()["error"]
        assert isinstance(error, dict) and set(error) == {"code", "message"}
        assert self.is_over()
        return error["code"], error["message"]

    def attach(self, place: Sandbox, *, ipv6: bool = True) -> Door:
        """A door that does all as it should."""
        door = Door(self.door["dir"], place)
        door.is_let_in(self.door["ticket"])
        listeners = [place.listener(), *([place.listener(INSIDE6)] if ipv6 else [])]
        answer = door.offer(listeners)
        assert answer == f"ok {self.door['secret']}", answer if answer[:2] == "no" else "another secret"
        assert self.event() == {"event": "attached"}
        return door


@contextlib.contextmanager
def attached(broker: Broker, place: Sandbox, **wish: object) -> Iterator[tuple[Inside, Door]]:
    """A session with its door."""
    with Inside(broker, **wish) as lease, lease.attach(place) as door:
        yield lease, door


@contextlib.contextmanager
def flat_descriptors(broker: Broker) -> Iterator[None]:
    """What happens meanwhile must leave the broker no more descriptors than it had."""
    def count() -> int:
        return len(procfs.descriptors(broker.pid))

    eventually("no session left", lambda: not listed(broker))
    before = count()
    yield
    eventually("no session left", lambda: not listed(broker))
    eventually(f"{before} descriptors as before", lambda: count() <= before)
