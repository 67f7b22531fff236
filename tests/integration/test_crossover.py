# SPDX-License-Identifier: Apache-2.0
"""Many profiles on several sources, many clients, a Google that fails at random: nobody gets a token of
another's account, and the brokers do not grow."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.google.script import Step
from tests.google.standin import USER, VM_ACCOUNT, Standin

from . import procfs
from .broker import Broker
from .conftest import Starter
from .deadline import FACTOR, eventually
from .http1 import TOKEN, Reply, parse, request
from .test_sources import from_file

pytestmark = pytest.mark.real_time

MINT = "generateAccessToken"
CLIENTS = 200 if FACTOR == 1 else 40
RUN_S = 60.0 if os.environ.get("POSTERN_LONG") == "1" else 10.0
PARTS = 5  # after each of which the brokers are measured
FEW = 40  # descriptors of a broker without clients are less
SEED = 805
MORE = 1.5  # the memory of later, which holds a sanitizer's own, too: that of a plain broker stays
GOOD = [Step(life_s=life_s) for life_s in (1.5, 3, 20, 45, 200, 500)]
BAD = [Step(status=503), Step(status=500), Step(status=429), Step(html=True), Step(reset=True),
       Step(truncate_at=20), Step(missing="accessToken"), Step(missing="expireTime"),
       Step(redirect="https://198.51.100.254/"),
       Step(delay_s=1.0, life_s=20), Step(delay_s=0.3, status=503)]
# each source's own token, with the same field in its answer
LOGINS = ("token", "sts", "metadataToken")
BAD_LOGIN = [Step(status=503), Step(reset=True), Step(missing="access_token"), Step(html=True)]


@dataclass
class Source:
    """A broker, its profiles' accounts, and who it is."""

    caller: str
    settings: dict[str, Any]
    accounts: dict[str, str]
    seen: Counter[int] = field(default_factory=Counter)
    sizes: list[tuple[int, int]] = field(default_factory=list)
    broker: Broker = field(init=False)

    def run(self, start: Starter, google: Standin) -> None:
        """Start the broker; who it is may mint for its own accounts only."""
        for account in self.accounts.values():
            google.add_account(account)
            google.grant(self.caller, account)
        # a sanitizer's own hoard of freed memory is kept small
        options = f"{os.environ.get('ASAN_OPTIONS', '')}:quarantine_size_mb=1".lstrip(":")
        self.broker = start(google, env={"ASAN_OPTIONS": options}, source=self.settings,
                            broker={"endpoint_rate": 0, "endpoint_connections": 2 * CLIENTS,
                                    "log_level": "warning"},
                            profiles={name: {"service_account": account}
                                      for name, account in self.accounts.items()})

    def measure(self) -> None:
        """Descriptors and memory once nobody is there any more."""
        pid = self.broker.pid
        eventually("no clients", lambda: len(procfs.descriptors(pid)) < FEW)
        self.sizes.append((len(procfs.descriptors(pid)), procfs.anonymous_kib(pid)))


def sources(google: Standin) -> list[Source]:
    """Three of three kinds, with eight profiles in all."""
    def accounts(*numbers: int) -> dict[str, str]:
        return {f"p{n}": f"agent-{n}@my-project.iam.gserviceaccount.com" for n in numbers}
    return [
        Source(USER, from_file(google.write_adc()), accounts(0, 1, 2)),
        Source(google.principal(), from_file(google.write_external_account()), accounts(3, 4, 5)),
        Source(VM_ACCOUNT, {"type": "metadata", "metadata_host": google.metadata_host},
               accounts(6, 7)),
    ]


async def weather(google: Standin, dice: random.Random) -> None:
    """Another Google every few milliseconds."""
    while True:
        google.always(MINT, dice.choice(GOOD if dice.random() < 0.7 else BAD))
        for kind in LOGINS:
            good = Step(expires_in=dice.choice((1, 2, 3599)))
            google.always(kind, good if dice.random() < 0.9 else dice.choice(BAD_LOGIN))
        await asyncio.sleep(0.03)


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Reply:
    """One request on an open connection."""
    writer.write(request(TOKEN))
    got = b""
    while not (found := parse(got)):
        data = await reader.read(65536)
        assert data, f"closed after {got[:40]!r}"
        got += data
    assert found[1] == len(got)
    return found[0]


def check(google: Standin, source: Source, account: str, reply: Reply, begun_ns: int) -> None:
    """A token of this account, which lives, minted by this source; or none for now."""
    source.seen[reply.status] += 1
    if reply.status != 200:
        assert reply.status == 503, reply
        return
    issued = google.token_info(reply.token)
    assert issued is not None and issued.minted
    assert issued.principal == account, f"{issued.principal}'s token for {account}"
    # what is told in whole seconds is up to one off
    assert issued.expires_ns > begun_ns - 10**9


async def client(google: Standin, source: Source, profile: str, end: float,
                 dice: random.Random) -> None:
    """Asks now and then, on a connection that is not kept for ever."""
    while time.monotonic() < end:
        reader, writer = await asyncio.open_connection(*source.broker.address(profile))
        for _ in range(dice.randint(1, 20)):
            begun_ns = time.time_ns()
            check(google, source, source.accounts[profile], await ask(reader, writer), begun_ns)
            # the others' turn: this process has one interpreter, in which Google runs, too
            await asyncio.sleep(dice.uniform(0.1, 0.3) * FACTOR)
            if time.monotonic() > end:
                break
        writer.close()


async def crowd(google: Standin, brokers: list[Source], run_s: float, seed: int) -> None:
    """All clients, each of one profile, for so long."""
    end = time.monotonic() + run_s
    profiles = [(source, profile) for source in brokers for profile in source.accounts]
    changing = asyncio.create_task(weather(google, random.Random(seed)))
    try:
        await asyncio.gather(*(client(google, *profiles[n % len(profiles)], end,
                                      random.Random(seed + n)) for n in range(CLIENTS)))
    finally:
        changing.cancel()
        google.clear()


def assert_own_callers(google: Standin, brokers: list[Source]) -> None:
    """Each account was minted for by its own source alone, and more than once."""
    minted = Counter(issued.principal for issued in google.minted)
    for source in brokers:
        for account in source.accounts.values():
            assert minted.pop(account) > 3, account
            assert {call.principal for call in google.calls_of(MINT)
                    if account in call.path and call.principal} == {source.caller}
    assert not minted


def test_no_client_gets_a_token_of_another_account(start: Starter, google: Standin) -> None:
    """apache/arrow-rs-object-store#805: a valid token of the wrong identity, kept for an hour."""
    brokers = sources(google)
    for source in brokers:
        source.run(start, google)
    for part in range(PARTS):
        asyncio.run(crowd(google, brokers, RUN_S / PARTS, SEED + part * CLIENTS))
        for source in brokers:
            source.measure()
    for source in brokers:
        print(f"{source.caller}: answers {dict(source.seen)}, descriptors and KiB {source.sizes}")
        assert source.seen[200] > 30 * RUN_S / FACTOR
        (descriptors, memory), *later = source.sizes
        # its kept connections to Google are as many as calls were under way at once
        assert max(count for count, _ in later) <= descriptors + len(source.accounts)
        assert max(kib for _, kib in later) <= MORE * memory
    assert sum(source.seen[503] for source in brokers) > 0
    assert_own_callers(google, brokers)
