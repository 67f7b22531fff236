# SPDX-License-Identifier: Apache-2.0
"""Sessions: opening and ending them, and what many of them cost."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from tests.integration import procfs
from tests.integration.broker import Broker
from tests.integration.sessions import SESSIONS, Session, address, ask, call

from .. import load, machine
from ..bench import Bench, Scenario
from ..figures import Result, Samples, in_turn

WISH: dict[str, Any] = {"profile": "vertex", "listen": "127.0.0.1"}
CHURN = 2000
LIVE = (1, 100, 1000)
CONNECTIONS = 32
# A little after its last mint a broker gives back what it does not need.
REST_S = 1.0
# Those of issue 7.
MOST_OPEN_AND_END_MS = 0.5
MOST_RESIDENT_MIB = 12.0
MOST_COST = 1.1


def run_churn(bench: Bench) -> Result:
    """Open and end, one after the other."""
    result = Result()
    reports = []
    with bench.broker() as broker:
        for _ in range(bench.rounds):
            reports.append(load.churn(bench.programs, broker.control_path, CHURN, WISH))
    table = result.table(f"{CHURN:,} sessions, one after the other", "", "p50 µs", "p99 µs", "max µs")
    for row, prefix in (("open", "open_"), ("end", "end_"), ("both", "")):
        table.add(row, *(Samples.of(report[f"{prefix}{name}_us"] for report in reports).text()
                         for name in ("p50", "p99", "max")))
    result.check("session open and end, median",
                 Samples.of(report["p50_us"] for report in reports).median / 1000,
                 at_most=MOST_OPEN_AND_END_MS, unit="ms", digits=3)
    return result


class Live:
    """A broker with so many sessions, each of which has been asked for its token."""

    def __init__(self, broker: Broker, count: int) -> None:
        self.broker, self.count = broker, count
        with broker.control_client() as client:
            made: list[Session] = [call(client, SESSIONS, "POST", WISH).json for _ in range(count)]
        for session in made:
            if ask(session).status != 200:
                raise load.Wrong("a session gives no token")
        self.last = made[-1]
        time.sleep(REST_S)
        self.resident_kib = procfs.rss_kib(broker.pid)
        self.cost_us: list[float] = []
        self.p50_us: list[float] = []
        self.churn_us: list[float] = []

    def measure(self, bench: Bench) -> None:
        """A load on one session, then sessions that come and go beside the others."""
        before = machine.cpu_ns(self.broker.pid)
        driven = load.drive(bench.programs, address(self.last), connections=CONNECTIONS,
                            seconds=bench.seconds)
        self.cost_us.append((machine.cpu_ns(self.broker.pid) - before) / 1000 / driven.answers)
        self.p50_us.append(driven.p50_us)
        self.churn_us.append(load.churn(bench.programs, self.broker.control_path, CHURN // 10,
                                        WISH)["p50_us"])

    def each_kib(self, first: Live) -> str:
        """What each further one added."""
        if self.count == first.count:
            return "-"
        return f"{(self.resident_kib - first.resident_kib) / (self.count - first.count):.1f}"


def run_live(bench: Bench) -> Result:
    """Three brokers, in turn."""
    result = Result()
    with bench.google() as google, contextlib.ExitStack() as stack:
        lives = [Live(stack.enter_context(bench.broker(google)), count) for count in LIVE]
        for _, live in in_turn(lives, bench.rounds):
            live.measure(bench)
        threads = [procfs.threads(live.broker.pid) for live in lives]
    first, last = lives[0], lives[-1]
    table = result.table("Live sessions, each with a token of its own", "sessions", "resident MiB",
                         "KiB a session", "CPU µs an answer", "p50 µs an answer", "p50 µs open and end")
    for live in lives:
        table.add(f"{live.count:,}", f"{live.resident_kib / 1024:.1f}", live.each_kib(first),
                  *(Samples.of(values).text(1) for values in (live.cost_us, live.p50_us)),
                  Samples.of(live.churn_us).text())
    many = f"{last.count:,} live sessions"
    result.check(f"resident with {many}", last.resident_kib / 1024, at_most=MOST_RESIDENT_MIB,
                 unit="MiB", digits=1)
    result.check(f"threads with {many}", threads[-1], at_most=1, digits=0)
    result.check(f"CPU an answer with {many}, of that with one",
                 Samples.of(last.cost_us).over(Samples.of(first.cost_us)).median, at_most=MOST_COST)
    return result


OPEN_AND_END = Scenario(
    "session-churn", "Opening and ending a session",
    "One client on one connection to the control socket; the audit trail goes to a file.", run_churn)
MANY = Scenario(
    "live-sessions", "Live sessions",
    "Three brokers with that many sessions, each of which has been asked for its token once; in turn 32 "
    "connections ask one session of each. Resident memory is taken a second after the last mint, without connections.", run_live)
