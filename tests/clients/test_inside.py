# SPDX-License-Identifier: Apache-2.0
"""Client libraries in a sandbox's network namespace with a door, without any variable: they look where they
always look."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import pytest

from tests.google.standin import Standin
from tests.integration import broker as brokers
from tests.integration.broker import Broker
from tests.integration.deadline import allowed
from tests.integration.doors import Inside
from tests.integration.namespaces import Namespace

from .program import Program

# Those that find the endpoint by themselves; the last two read no variable, and have its address or name built in.
BY_THEMSELVES = ("python_google_auth", "node_google_auth_library", "ruby_googleauth",
                 "rust_gcp_auth")
ADDRESS = "169.254.169.254"
# As the engine writes it for the door's --add-host.
HOSTS = f"127.0.0.1 localhost\n{ADDRESS} metadata.google.internal metadata\n"
_CLONE_NEWNS, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000
_libc = ctypes.CDLL(None, use_errno=True)
T = TypeVar("T")


def _check(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Sandbox:
    """A network namespace with a door, and a way for the model's API alone."""

    def __init__(self, directory: Path, broker: Broker, api: str) -> None:
        self._hosts = directory / "hosts"
        self._hosts.write_text(HOSTS)
        self._directory, self._broker = directory, broker
        self._target = urlsplit(api)

    def __enter__(self) -> Sandbox:
        self._stack = contextlib.ExitStack()
        self._namespace = self._stack.enter_context(Namespace())
        self._stack.enter_context(self._door())
        with self._namespace.entered():
            self._api = socket.create_server(("127.0.0.1", 0))
        self._stack.callback(self._api.close)
        threading.Thread(target=self._relay_all, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def api(self) -> str:
        """Where the model's API is, seen from inside."""
        return f"http://127.0.0.1:{self._api.getsockname()[1]}"

    @contextlib.contextmanager
    def _door(self) -> Iterator[None]:
        program = Path(brokers.binary()).parents[1] / "sandbox" / "door" / "postern-door"
        lease = Inside(self._broker)
        ticket = self._directory / "ticket"
        ticket.write_text(lease.door["ticket"])
        with self._namespace.entered():
            door = subprocess.Popen([program, "--attach", lease.door["dir"], "--ticket", ticket],
                                    stdin=subprocess.DEVNULL)
        try:
            assert lease.event() == {"event": "attached"}
            ticket.unlink()  # as the launcher does
            yield
            door.terminate()
            assert door.wait(allowed(10)) == 0
        finally:
            door.kill()
            door.wait()
            ticket.unlink(missing_ok=True)
            lease.client.close()

    def _relay_all(self) -> None:
        """From inside to the stand-in, which is outside with the broker."""
        with contextlib.suppress(OSError):
            while True:
                inner, _ = self._api.accept()
                outer = socket.create_connection((self._target.hostname, self._target.port or 80))
                for one, other in ((inner, outer), (outer, inner)):
                    threading.Thread(target=self._relay, args=(one, other), daemon=True).start()

    @staticmethod
    def _relay(one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    def inside(self, do: Callable[[], T]) -> T:
        """What it starts is in the namespace, and reads the hosts of a sandbox."""
        done: list[T] = []

        def work() -> None:
            _check(_libc.unshare(_CLONE_NEWNS))  # of this thread alone
            _check(_libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None))
            _check(_libc.mount(str(self._hosts).encode(), b"/etc/hosts", None, _MS_BIND, None))
            with self._namespace.entered():
                done.append(do())
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert done, "nothing was started"
        return done[0]


@pytest.mark.parametrize("name", BY_THEMSELVES)
def test_a_library_finds_its_token_without_any_variable(name: str, broker: Broker,
                                                        google: Standin, directory: Path) -> None:
    with Sandbox(directory, broker, google.http_url) as sandbox:
        only = {"GOOGLE_VERTEX_BASE_URL": sandbox.api}
        with sandbox.inside(lambda: Program(name, directory, only)) as program:
            outcome = program.call()
        assert outcome.text and not outcome.error, outcome
        assert google.count("generateAccessToken") == 1
    served = broker.audit_of("token.serve")
    assert [line["peer"] for line in served] == [ADDRESS]
