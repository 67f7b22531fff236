# SPDX-License-Identifier: Apache-2.0
"""Latency around a refresh, under load."""

from __future__ import annotations

from .. import load
from ..bench import Bench, Scenario
from ..figures import Result, Samples

MINT = "generateAccessToken"
MARGIN_S = 60
# The old token is served while the new one is fetched behind it: it has a little more than twice the
# margin left when the load begins.
AHEAD_S = 1.5
MINT_S = 0.3
LOAD_S = 3.5
CONNECTIONS = 32


def run(bench: Bench) -> Result:
    """A fresh broker each round, whose token comes to its refresh while it is asked for."""
    result = Result()
    within: list[load.Driven | Samples] = []
    beside: list[Samples] = []
    for _ in range(bench.rounds):
        with bench.google() as google, bench.directory() as directory, bench.broker(
                google, profiles={"vertex": {"refresh_margin": f"{MARGIN_S}s"}}) as broker:
            google.script(MINT, {"life_s": 2 * MARGIN_S + AHEAD_S}, {"delay_s": MINT_S})
            if broker.token().status != 200:
                raise load.Wrong("Postern gives no token")
            driven = load.drive(bench.programs, broker.address(), connections=CONNECTIONS,
                                seconds=LOAD_S, trace=directory / "trace")
            calls = google.calls_of(MINT)
            if len(calls) != 2 or calls[1].answered_mono is None:
                raise load.Wrong(f"{len(calls)} mints where the second is the refresh")
            begin, end = calls[1].mono - 0.05, calls[1].answered_mono + 0.05
            within.append(Samples.of(took for begun, took in driven.trace if begin <= begun <= end))
            beside.append(Samples.of(took for begun, took in driven.trace
                                     if not begin <= begun <= end))
    table = result.table("Latency under load, µs", "", "p50", "p99", "p99.9", "max")
    for row, rounds in (("around the refresh", within), ("else", beside)):
        table.add(row, *(Samples.of(each.percentile(share) for each in rounds).text()
                         for share in (0.5, 0.99, 0.999, 1.0)))
    result.note(f"32 connections; the stand-in for Google takes {MINT_S * 1000:.0f} ms for the new token. "
                "\"Around\" is from 50 ms before Google was asked to 50 ms after it answered.")
    return result


SCENARIO = Scenario(
    "refresh", "A refresh under load",
    "A token comes to its refresh while 32 connections ask for it: the old one is served meanwhile.", run)
