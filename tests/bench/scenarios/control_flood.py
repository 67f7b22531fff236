# SPDX-License-Identifier: Apache-2.0
"""The control socket, while the endpoints are flooded."""

from __future__ import annotations

from tests.integration.http1 import request

from .. import load
from ..bench import Bench, Scenario
from ..figures import Result, Samples, in_turn

CLIENTS = 256
# That of issue 7.
MOST_P99_MS = 15.0
STATUS = request("/v1/status", host="postern", flavor=False)


def run(bench: Bench) -> Result:
    """The same questions with and without the flood, in turn."""
    result = Result()
    samples: dict[bool, list[load.Driven]] = {True: [], False: []}
    with bench.broker() as broker:
        if broker.token().status != 200:
            raise load.Wrong("Postern gives no token")
        for _, flooded in in_turn((False, True), bench.rounds):
            flood = load.Drive(bench.programs, broker.address(), connections=CLIENTS,
                               seconds=bench.seconds + 0.4) if flooded else None
            samples[flooded].append(load.drive(bench.programs, broker.control_path, whole=STATUS,
                                               seconds=bench.seconds, close=True))
            if flood:
                flood.wait()
    table = result.table("GET /v1/status on a connection of its own, ms", "", "p50", "p99", "max")
    for flooded, row in ((False, "nobody else"), (True, f"{CLIENTS} clients at an endpoint")):
        table.add(row, *(Samples.of(getattr(each, name) / 1000 for each in samples[flooded]).text(2)
                         for name in ("p50_us", "p99_us", "max_us")))
    result.check(f"control socket under a flood of {CLIENTS} clients, p99",
                 Samples.of(each.p99_us for each in samples[True]).median / 1000,
                 at_most=MOST_P99_MS, unit="ms")
    result.note("Who floods and who asks share a processor.")
    return result


SCENARIO = Scenario(
    "control-flood", "The control socket under a flood",
    "256 connections ask one endpoint for its token as fast as they are answered; meanwhile one client "
    "asks the control socket for its status, over and over.", run)
