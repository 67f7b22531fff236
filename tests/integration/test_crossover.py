# SPDX-License-Identifier: Apache-2.0
"""Many profiles, many clients, a Google that fails at random: nobody gets a token of another's account."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.google.script import Step
from tests.google.standin import USER, Standin

from . import procfs
from .broker import Broker
from .conftest import Starter
from .crowd import Crowd
from .deadline import eventually
from .http1 import TOKEN, request

pytestmark = pytest.mark.real_time

MINT = "generateAccessToken"
PROFILES = 8
CLIENTS = 200
RUN_S = 60.0 if os.environ.get("POSTERN_LONG") == "1" else 20.0
SEED = 805
MORE_KIB = 16 * 1024  # of which a sanitizer's own is the most
GOOD = [Step(life_s=life_s) for life_s in (1.5, 3, 20, 45, 200, 500)]
BAD = [Step(status=503), Step(status=500), Step(status=429), Step(html=True), Step(reset=True),
       Step(truncate_at=20), Step(missing="accessToken"), Step(missing="expireTime"),
       Step(redirect="https://198.51.100.254/"),
       Step(delay_s=1.0, life_s=20), Step(delay_s=0.3, status=503)]
BAD_LOGIN = [Step(status=503), Step(reset=True), Step(missing="access_token"), Step(html=True)]


class Weather:
    """A Google that is another one every few milliseconds."""

    def __init__(self, google: Standin) -> None:
        self._google = google
        self._random = random.Random(SEED)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Weather:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._google.clear()

    def _run(self) -> None:
        choose = self._random
        while not self._over.wait(0.03):
            self._google.always(MINT, choose.choice(GOOD if choose.random() < 0.7 else BAD))
            login = Step(expires_in=choose.choice((1, 2, 3599)))
            self._google.always("token", login if choose.random() < 0.9
                                else choose.choice(BAD_LOGIN))


def clients_of(broker: Broker, google: Standin, profile: str, account: str,
               end: float) -> Counter[int]:
    """A profile's share of the clients, wave after wave; how often each status came."""
    seen: Counter[int] = Counter()
    while time.monotonic() < end:
        begun_ns = time.time_ns()
        with Crowd(broker.address(profile), request(TOKEN), CLIENTS // PROFILES) as crowd:
            crowd.run()
            for member in crowd.members:
                assert member.reply is not None, member.fault
                seen[member.reply.status] += 1
                if member.reply.status != 200:
                    assert member.reply.status == 503, member.reply
                    continue
                issued = google.token_info(member.reply.token)
                assert issued is not None and issued.minted
                assert issued.principal == account, (profile, issued.principal)
                # what is told in whole seconds is up to one off
                assert issued.expires_ns > begun_ns - 10**9
        time.sleep(0.01)  # other profiles' turn: this process has one interpreter
    return seen


def sizes(broker: Broker) -> tuple[int, int]:
    """Descriptors and memory once nobody is there any more."""
    eventually("no clients", lambda: len(procfs.descriptors(broker.pid)) < 2 * CLIENTS // PROFILES)
    return len(procfs.descriptors(broker.pid)), procfs.rss_kib(broker.pid)


def test_no_client_gets_a_token_of_another_account(start: Starter, google: Standin) -> None:
    """apache/arrow-rs-object-store#805: a valid token of the wrong identity, kept for an hour."""
    accounts = {f"p{n}": f"agent-{n}@my-project.iam.gserviceaccount.com" for n in range(PROFILES)}
    for account in accounts.values():
        google.add_account(account)
        google.grant(USER, account)
    # a sanitizer's own hoard of freed memory is kept small
    options = f"{os.environ.get('ASAN_OPTIONS', '')}:quarantine_size_mb=1".lstrip(":")
    broker = start(google, env={"ASAN_OPTIONS": options},
                   broker={"endpoint_rate": 0, "endpoint_connections": 2 * CLIENTS,
                           "log_level": "warning"},
                   profiles={name: {"service_account": account}
                             for name, account in accounts.items()})
    seen: Counter[int] = Counter()
    measured = []
    for part_s in (RUN_S / 4, RUN_S * 3 / 4):
        end = time.monotonic() + part_s
        with Weather(google), ThreadPoolExecutor(PROFILES) as pool:
            for share in [pool.submit(clients_of, broker, google, name, account, end)
                          for name, account in accounts.items()]:
                seen += share.result()
        measured.append(sizes(broker))
    print(f"answers: {dict(seen)}; descriptors and KiB: {measured}")
    assert seen[200] > 1000 and seen[503] > 0
    (descriptors, memory), (descriptors_then, memory_then) = measured
    # its kept connections to Google are as many as calls were under way at once
    assert descriptors_then <= descriptors + PROFILES
    assert memory_then <= memory + MORE_KIB
    minted = Counter(issued.principal for issued in google.minted)
    assert set(minted) == set(accounts.values())
    assert minted.total() > 3 * PROFILES, minted
