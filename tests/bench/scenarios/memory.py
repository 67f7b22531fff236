# SPDX-License-Identifier: Apache-2.0
"""Memory: what a million requests leave behind."""

from __future__ import annotations

import time

from tests.integration import procfs

from .. import load
from ..bench import Bench, Scenario
from ..figures import Result

FEW, MANY = 10_000, 1_000_000
CONNECTIONS = 32
# A little after its last mint a broker gives back what it does not need.
REST_S = 1.0
# That of issue 7.
MOST_GROWTH_KIB = 256


def _sizes(pid: int) -> tuple[int, int]:
    """KiB resident, and how many of them are memory of its own: not pages of a program's file."""
    return procfs.rss_kib(pid), int(procfs.status(pid, "RssAnon").split()[0])


def run(bench: Bench) -> Result:
    """One broker, looked at three times."""
    result = Result()
    table = result.table("Resident memory, KiB", "after", "all", "its own")
    with bench.google() as google, bench.broker(google) as broker:
        if broker.token().status != 200:
            raise load.Wrong("Postern gives no token")
        time.sleep(REST_S)
        seen = {"the first token": _sizes(broker.pid)}
        for upto, requests in ((FEW, FEW), (MANY, MANY - FEW)):
            load.drive(bench.programs, broker.address(), connections=CONNECTIONS, requests=requests)
            seen[f"{upto:,} requests"] = _sizes(broker.pid)
    for after, sizes in seen.items():
        table.add(after, *(f"{size:,}" for size in sizes))
    result.check(f"growth from {FEW:,} to {MANY:,} requests",
                 seen[f"{MANY:,} requests"][0] - seen[f"{FEW:,} requests"][0],
                 at_most=MOST_GROWTH_KIB, unit="KiB", digits=0)
    return result


SCENARIO = Scenario("memory", "Memory", "One broker, 32 connections that are kept.", run)
