# SPDX-License-Identifier: Apache-2.0
"""Doors of the build tree, and a broker's end of the attach socket that does what a test tells it."""

from __future__ import annotations

import array
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from . import leaks
from .broker import ROOT
from .deadline import allowed
from .namespaces import Namespace

METADATA_V4, METADATA_V6 = "169.254.169.254", "fd20:ce::254"
# The codes of sandbox/door/exit_code.h.
ENDED, USAGE, TAKEN, ALIEN, DEVICE, ADDRESS, RULE, BIND = 0, 2, 3, 4, 5, 6, 7, 8
CONNECT, REFUSED, GONE, CONFINE, TICKET, PROTOCOL = 9, 10, 11, 12, 13, 14
SO_NETNS_COOKIE = 71
CAPABILITIES = ("net_admin", "net_bind_service")


def binary() -> Path:
    """The path of postern-door in the build tree that is tested."""
    build = os.environ.get("POSTERN_BUILD") or str(ROOT / "build" / "asan")
    return Path(build, "sandbox", "door", "postern-door").absolute()


def as_container_root(*capabilities: str) -> list[str]:
    """What makes a command one of root with these capabilities only, as an engine would."""
    kept = "".join(f",+{name}" for name in capabilities)
    return ["setpriv", f"--bounding-set=-all{kept}", f"--inh-caps=-all{kept}"]


class Contact:
    """One connection of a door's, seen by the broker."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.connection.settimeout(allowed(15))

    def __enter__(self) -> Contact:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def hear(self) -> str:
        """The next message, which brings no descriptor; "" when the door has closed."""
        return self.connection.recv(512).decode("ascii")

    def hear_sockets(self) -> list[socket.socket]:
        """The next message, which is D with descriptors."""
        data, control, flags, _ = self.connection.recvmsg(512, socket.CMSG_SPACE(8 * 4))
        assert data == b"D" and not flags & socket.MSG_CTRUNC, (data, flags)
        (level, kind, body), = control
        assert (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
        return [socket.socket(fileno=fd) for fd in array.array("i", body)]

    def say(self, message: str) -> None:
        """One message."""
        self.connection.send(message.encode("ascii"))

    def cookie(self) -> int:
        """Of the network namespace that the door is in."""
        return int.from_bytes(self.connection.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8), "little")

    def is_closed(self, timeout_s: float = 5.0) -> bool:
        """Whether the door has closed, or does so in time."""
        ready, _, _ = select.select([self.connection], [], [], allowed(timeout_s))
        return bool(ready) and self.hear() == ""

    def attach(self) -> list[socket.socket]:
        """All that comes after the first message, as a broker does it that is content; the sockets."""
        self.say("go")
        sockets = self.hear_sockets()
        self.say("ok " + "5" * 32)
        return sockets


class Attach:
    """The attach socket, and the directory that it is in."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "attach"
        self.directory.mkdir()
        self.listener: socket.socket | None = None
        self.open()

    def __enter__(self) -> Attach:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Listen, as a broker that starts."""
        path = self.directory / "sock"
        path.unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(path))
        path.chmod(0o666)
        self.listener.listen(16)
        self.listener.settimeout(allowed(15))

    def close(self) -> None:
        """Stop, as a broker that is killed: the socket's file stays."""
        if self.listener is not None:
            self.listener.close()
        self.listener = None

    def accept(self) -> Contact:
        """The next door's connection."""
        assert self.listener is not None
        return Contact(self.listener.accept()[0])


class Door:
    """One that runs in a namespace without an engine."""

    def __init__(self, namespace: Namespace, attach: Path, ticket: str | None = None, *,
                 options: Sequence[str] = (), capabilities: Sequence[str] = CAPABILITIES,
                 user: Sequence[str] = (), without: Callable[[], None] | None = None) -> None:
        if ticket is None:
            ticket = secrets.token_hex(16)
            leaks.note([ticket])
        self.ticket = ticket
        self._said: str | None = None
        file = attach / "ticket"
        file.write_text(self.ticket)
        self.process = subprocess.Popen(
            ["nsenter", f"--net={namespace.path}", "--", *as_container_root(*capabilities), *user,
             str(binary()), "--attach", str(attach), "--ticket", str(file), *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            preexec_fn=without)

    def __enter__(self) -> Door:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.end()

    @property
    def pid(self) -> int:
        """nsenter and setpriv become the door."""
        return self.process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send it one."""
        self.process.send_signal(number)

    def end(self, timeout_s: float = 15.0) -> tuple[int, str]:
        """Its exit status and what it said, once it has ended."""
        if self._said is None:
            _, self._said = self.process.communicate(timeout=allowed(timeout_s))
            print(self._said, file=sys.stderr)  # pytest keeps it, and it is searched
        return self.process.returncode, self._said
