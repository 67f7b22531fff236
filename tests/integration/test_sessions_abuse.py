# SPDX-License-Identifier: Apache-2.0
"""Everything at once, in an order that a seed decides: what is wrong shows as a fault of the sanitizers,
as a session that should not be there, or as a broker that does not answer."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.google.script import Step
from tests.google.standin import Standin

from . import procfs
from .broker import Broker
from .conftest import Starter
from .deadline import FACTOR, allowed, eventually
from .http1 import TOKEN, Broken, Client, request
from .sessions import (MINT, SESSIONS, Lease, Session, address, ask, control, delete, leased, listed,
                       opened, whole)

SECONDS = float(os.environ.get("POSTERN_ABUSE_S", "5"))
PROFILES = {"vertex": {}, "other": {"listen": None}, "shared": {"token_sharing": "profile"}}
SETTINGS = {"max_sessions": 200, "max_sessions_per_user": 200, "endpoint_rate": 50,
            "endpoint_connections": 16}
LET_GO = (OSError, Broken, AssertionError, TimeoutError, ValueError)


class Abuser:
    """One thread that does one thing after another."""

    def __init__(self, broker: Broker, google: Standin, seed: int) -> None:
        self.broker, self.google = broker, google
        self.random = random.Random(seed)
        self.known: list[Session] = []
        self.leases: list[Lease] = []
        self.clients: list[Client] = []
        self.done = 0

    def wish(self) -> dict[str, Any]:
        """Mostly a good one."""
        pick = self.random.choice
        wish = {"profile": pick(["vertex", "other", "shared", "vertex", "nobody"]),
                "listen": pick(["127.0.0.1", "::1", "127.0.0.3"]),
                "pin": pick(["first", "launcher"]), "ttl_s": pick([1, 1, 2, 60]),
                "preflight": pick(["none"] * 20 + ["grant", "mint"])}
        if self.random.random() < 0.2:
            wish["peer"] = ["127.0.0.1", "::1"]
        return wish

    def open(self) -> None:
        """A session."""
        reply = control(self.broker, SESSIONS, "POST", self.wish())
        assert reply.status in (201, 404, 429, 502), reply
        if reply.status == 201:
            self.known.append(reply.json)

    def lease(self) -> None:
        """A session with a lease."""
        client = self.broker.control_client()
        try:
            self.leases.append(Lease(client, **self.wish()))
        except LET_GO:
            client.close()

    def break_lease(self) -> None:
        """Somehow."""
        if self.leases:
            lease = self.leases.pop(self.random.randrange(len(self.leases)))
            self.known.append(lease.session)
            how = self.random.choice(["close", "reset", "half_close"])
            getattr(lease.client, how)()
            lease.client.close()

    def vanish(self) -> None:
        """In the middle of a call."""
        data = whole(SESSIONS, "POST", {**self.wish(), "lease": True})
        with contextlib.closing(self.broker.control_client()) as client:
            client.send(data[:self.random.randrange(len(data) + 1)])
            if self.random.random() < 0.3:
                client.half_close()

    def any_session(self) -> Session | None:
        """One that is, or was."""
        known = self.known + [lease.session for lease in self.leases]
        return self.random.choice(known) if known else None

    def delete(self) -> None:
        """Whichever."""
        session = self.any_session()
        if session:
            assert delete(self.broker, session).status in (204, 404)

    def patch(self) -> None:
        """With whatever peers."""
        session = self.any_session()
        if session:
            peers = self.random.choice([["127.0.0.1"], ["::1", "127.0.0.1"], ["127.0.0.9"], []])
            reply = control(self.broker, f"{SESSIONS}/{session['id']}", "PATCH", {"peer": peers})
            assert reply.status in (200, 400, 404, 409)

    def request(self) -> None:
        """At an endpoint, perhaps without waiting for its answer."""
        session = self.any_session()
        if not session:
            return
        with contextlib.suppress(OSError):
            client = Client(address(session))
            target = self.random.choice(["/", TOKEN, TOKEN, "/unknown"])
            client.send(request(target, host=f"[::1]:{address(session)[1]}"
                                if ":" in address(session)[0] else "localhost")
                        * self.random.choice([1, 1, 3]))
            self.clients.append(client)
            if self.random.random() < 0.3:
                client.half_close()

    def hang_up(self) -> None:
        """On some of the clients."""
        self.random.shuffle(self.clients)
        while len(self.clients) > 10:
            client = self.clients.pop()
            with contextlib.suppress(OSError):
                getattr(client, self.random.choice(["close", "reset"]))()

    def noise(self) -> None:
        """Bytes of no meaning, to either side."""
        session = self.any_session()
        data = bytearray(whole(SESSIONS, "POST", self.wish()) * self.random.choice([1, 2]))
        for _ in range(self.random.choice([1, 3, 50])):
            data[self.random.randrange(len(data))] = self.random.choice(b"\0\r\n :{}[]\"\xff/%")
        with contextlib.suppress(OSError):
            where = address(session) if session and self.random.random() < 0.5 else \
                self.broker.control_path
            with Client(where) as client:
                client.send(bytes(data))

    def look(self) -> None:
        """At all there is."""
        for target in (SESSIONS, "/v1/status", "/metrics"):
            assert control(self.broker, target).status == 200

    def run(self, until: float) -> None:
        """Until then."""
        acts: list[Callable[[], None]] = [
            self.open, self.open, self.lease, self.lease, self.break_lease, self.break_lease,
            self.vanish, self.delete, self.delete, self.patch, self.patch, self.request,
            self.request, self.request, self.request, self.hang_up, self.noise, self.look]
        while time.monotonic() < until:
            with contextlib.suppress(OSError, Broken, TimeoutError):
                self.random.choice(acts)()
                self.done += 1  # what was let go is not

    def leave(self) -> None:
        """Close everything."""
        for each in (*self.clients, *(lease.client for lease in self.leases)):
            each.close()


def google_trouble(google: Standin, stop: threading.Event, seed: int) -> None:
    """Mints that hang, fail and come late."""
    chance = random.Random(seed)
    while not stop.wait(0.1):
        act = chance.randrange(5)
        if act == 0:
            google.hold(MINT)
        elif act == 1:
            google.script(MINT, Step(status=chance.choice([500, 403, 429])))
        elif act == 2:
            google.script(MINT, Step(life_s=chance.choice([1, 5, 40])))
        else:
            google.release(MINT)
    google.clear()
    google.release(MINT)


def reload_trouble(broker: Broker, google: Standin, stop: threading.Event, seed: int) -> None:
    """Profiles that come and go, logins that change."""
    chance = random.Random(seed)
    while not stop.wait(0.05):
        names = [name for name in PROFILES if chance.random() < 0.85] or ["vertex"]
        if chance.random() < 0.3:
            google.write_adc(broker.sections["source"]["file"], **google.new_login())
        broker.configure(broker=SETTINGS, profiles={name: PROFILES[name] for name in names})
        for _ in range(chance.choice([1, 1, 5])):
            broker.signal(signal.SIGHUP)


@pytest.mark.parametrize("reloads", [False, True], ids=["steady", "reloads"])
def test_everything_at_once(start: Starter, google: Standin, reloads: bool) -> None:
    seed = int(os.environ.get("POSTERN_ABUSE_SEED", "8174"))
    broker = start(google, broker=SETTINGS, profiles=PROFILES)
    before = len(procfs.descriptors(broker.pid))
    stop = threading.Event()
    abusers = [Abuser(broker, google, seed + number) for number in range(6)]
    faults: list[BaseException] = []

    def work(what: Callable[..., None], *args: Any) -> None:
        try:
            what(*args)
        except BaseException as err:
            faults.append(err)
    until = time.monotonic() + SECONDS
    threads = [threading.Thread(target=work, args=(abuser.run, until)) for abuser in abusers]
    threads.append(threading.Thread(target=work, args=(google_trouble, google, stop, seed)))
    if reloads:
        threads.append(threading.Thread(target=work,
                                        args=(reload_trouble, broker, google, stop, seed)))
    for thread in threads:
        thread.start()
    for thread in threads[:6]:
        thread.join(allowed(SECONDS + 60))
    stop.set()
    for thread in threads[6:]:
        thread.join(allowed(30))
    assert not faults, faults
    print(f"acts: {[abuser.done for abuser in abusers]}")
    for abuser in abusers:
        abuser.leave()
    broker.configure(broker=SETTINGS, profiles=PROFILES)
    eventually("all profiles", lambda: (broker.signal(signal.SIGHUP),
                                        len(broker.status()["profiles"]) == 3)[1])
    for session in listed(broker):
        delete(broker, session)
    assert listed(broker) == []
    # libcurl keeps connections to Google
    eventually("all closed", lambda: len(procfs.descriptors(broker.pid)) <= before + 24, 8)
    ids = [[line["session"] for line in broker.audit_of(event)]
           for event in ("session.open", "session.close")]
    assert sorted(ids[0]) == sorted(ids[1])
    served = len(broker.audit_of("token.serve"))
    print(f"sessions: {len(ids[0])}, tokens served: {served}")
    assert min(abuser.done for abuser in abusers) >= 20 * SECONDS / FACTOR
    assert len(ids[0]) >= 20 * SECONDS / FACTOR and served >= 4 * SECONDS / FACTOR
    assert procfs.threads(broker.pid) == 1
    google.clear()
    assert ask(opened(broker, profile="other")).status in (200, 403, 503)


def test_sigterm_in_the_middle_of_everything(start: Starter, google: Standin) -> None:
    for number in range(4):
        broker = start(google, broker=SETTINGS, profiles=PROFILES)
        abusers = [Abuser(broker, google, 100 * number + n) for n in range(4)]
        until = time.monotonic() + 0.7
        threads = [threading.Thread(target=run_quietly, args=(abuser, until)) for abuser in abusers]
        for thread in threads:
            thread.start()
        time.sleep(0.3)  # in the middle of it
        broker.process.terminate()
        for thread in threads:
            thread.join(allowed(60))
        assert broker.wait() == 0
        for abuser in abusers:
            abuser.leave()
        opens, closes = ([line["session"] for line in broker.audit_of(event)]
                         for event in ("session.open", "session.close"))
        assert sorted(opens) == sorted(closes)
        print(f"acts: {[abuser.done for abuser in abusers]}, sessions: {len(opens)}")
        assert min(abuser.done for abuser in abusers) >= 8 / FACTOR and len(opens) >= 8 / FACTOR


def run_quietly(abuser: Abuser, until: float) -> None:
    """Its assertions do not count when the broker is ending."""
    with contextlib.suppress(*LET_GO, json.JSONDecodeError):
        abuser.run(until)


def test_a_lease_line_is_one_line(start: Starter) -> None:
    """Whatever a label holds."""
    broker = start()
    with leased(broker, label="\\n \" {} [] ' ` $ %s %n") as lease:
        assert lease.session["label"] == "\\n \" {} [] ' ` $ %s %n"
