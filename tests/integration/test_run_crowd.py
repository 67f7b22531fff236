# SPDX-License-Identifier: Apache-2.0
"""Many runs at once, and strangers that try to be one of them."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .engine import IMAGE, Engine, enter
from .http1 import TOKEN, request
from .launch import ASK, Place, Ran, broker_in, standin_in

LAUNCHES = 20
INTRUDED = 100
AT_ONCE = 5
# Of the 64 connections of an endpoint: to take all of them would be another attack, on the service.
WAITING = 16


def test_twenty_launches_of_twenty_profiles_never_see_each_other_s_token(
        engine: Engine, directory: Path) -> None:
    accounts = {f"p{i}": f"agent{i}@my-project.iam.gserviceaccount.com" for i in range(LAUNCHES)}
    with standin_in(engine) as google:
        for account in accounts.values():
            google.add_account(account)
            google.grant("operator@example.com", account)
        profiles = {name: {"service_account": account} for name, account in accounts.items()}
        with broker_in(engine, directory, google, profiles=profiles) as broker:
            place = Place(engine, directory, broker)

            def one(profile: str) -> Ran:
                return place.sh(ASK, options=["--profile", profile], timeout_s=180)
            with ThreadPoolExecutor(LAUNCHES) as pool:
                ran = dict(zip(accounts, pool.map(one, accounts), strict=True))
            for name, account in accounts.items():
                info = google.token_info(ran[name].token)
                assert info is not None and info.principal == account
            assert len({each.token for each in ran.values()}) == LAUNCHES
            assert place.is_clean()
            place.clear()


class Intruder(threading.Thread):
    """Asks for the token at every session's endpoint, as fast as it can, from one place."""

    def __init__(self, place: Place, namespace: Path) -> None:
        super().__init__()
        self.place, self.namespace = place, namespace
        self.asked: set[int] = set()
        self.loot: list[bytes] = []
        self._ended = threading.Event()
        self._waiting: list[tuple[int, socket.socket]] = []

    def stop(self) -> None:
        """End it."""
        self._ended.set()
        self.join()

    def run(self) -> None:
        """Until it is stopped."""
        enter(self.namespace)
        while not self._ended.is_set():
            for session in self.place.sessions():
                host, _, port = session["listen"].rpartition(":")
                self._ask(host, int(port))
            self._read(wait=False)
        self._read(wait=True)

    def _ask(self, host: str, port: int) -> None:
        if [each for each, _ in self._waiting].count(port) >= WAITING:
            return
        with contextlib.suppress(OSError):
            connection = socket.create_connection((host, port), 1.0)
            connection.sendall(request(TOKEN, host=f"host.docker.internal:{port}"))
            self._waiting.append((port, connection))
            self.asked.add(port)

    def _read(self, *, wait: bool) -> None:
        """What has come; the rest is left waiting, as an intruder would."""
        waiting = []
        for port, connection in self._waiting:
            connection.settimeout(5.0 if wait else 0.0)
            try:
                self.loot.append(connection.recv(65536))
            except BlockingIOError:
                waiting.append((port, connection))
                continue
            except OSError:
                pass
            connection.close()
        self._waiting = waiting


@contextlib.contextmanager
def stranger(place: Place) -> Iterator[Path]:
    """The network namespace of another container on the same bridge."""
    container = place.engine.docker("run", "--detach", IMAGE, "sleep", "1000").stdout.strip()
    try:
        yield Path(f"/proc/{place.engine.inspect(container)['State']['Pid']}/ns/net")
    finally:
        place.engine.remove([container])


@pytest.mark.parametrize("where", ["host", "container"])
def test_an_intruder_gets_nothing_and_is_audited(place: Place, where: str) -> None:
    with contextlib.ExitStack() as stack:
        namespace = place.engine.namespace.file if where == "host" else \
            stack.enter_context(stranger(place))
        intruder = Intruder(place, namespace)
        intruder.start()
        stack.callback(intruder.stop)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            ran = list(pool.map(lambda _: place.sh(ASK), range(INTRUDED // 2)))
    assert not [each for each in ran if each.status]
    assert len(intruder.asked) > len(ran) * 0.8, "the intruder was too slow to mean anything"
    assert not [reply for reply in intruder.loot if b"access_token" in reply]
    assert {reply[:12] for reply in intruder.loot if reply} <= {b"HTTP/1.1 403", b"HTTP/1.1 503"}
    refused = place.broker.audit_of("request.refuse", reason="peer")
    assert len({line["session"] for line in refused}) >= len(intruder.asked) * 0.8
    served = place.broker.audit_of("token.serve")
    assert len({line["session"] for line in served}) == len(ran)
    assert not {line["peer"] for line in served} & {line["peer"] for line in refused}
