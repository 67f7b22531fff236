# SPDX-License-Identifier: Apache-2.0
"""Memory: what a million requests leave behind."""

from __future__ import annotations

from tests.integration import procfs

from .. import load
from ..bench import Bench, Scenario
from ..figures import Result

FEW, MANY = 10_000, 1_000_000
CONNECTIONS = 32
# That of issue 7.
MOST_GROWTH_KIB = 256


def run(bench: Bench) -> Result:
    """One broker, looked at three times."""
    result = Result()
    table = result.table("Resident memory", "after", "KiB")
    with bench.google() as google, bench.broker(google) as broker:
        table.add("start", f"{procfs.rss_kib(broker.pid):,}")
        if broker.token().status != 200:
            raise load.Wrong("Postern gives no token")
        seen = []
        for requests in (FEW, MANY - FEW):
            load.drive(bench.programs, broker.address(), connections=CONNECTIONS, requests=requests)
            seen.append(procfs.rss_kib(broker.pid))
    table.add(f"{FEW:,} requests", f"{seen[0]:,}")
    table.add(f"{MANY:,} requests", f"{seen[1]:,}")
    result.check(f"growth from {FEW:,} to {MANY:,} requests", seen[1] - seen[0],
                 at_most=MOST_GROWTH_KIB, unit="KiB", digits=0)
    return result


SCENARIO = Scenario("memory", "Memory", "One broker, 32 connections that are kept.", run)
