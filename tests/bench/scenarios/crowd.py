# SPDX-License-Identifier: Apache-2.0
"""A thousand clients that ask for the first token at once."""

from __future__ import annotations

from .. import load
from ..bench import Bench, Scenario
from ..figures import Result, Samples

MINT = "generateAccessToken"
CLIENTS = 1000
MINT_S = 0.3


def run(bench: Bench) -> Result:
    """A fresh broker each round."""
    result = Result()
    mints, samples, behind = [], [], []
    for _ in range(bench.rounds):
        with bench.google() as google, bench.broker(google) as broker, bench.directory() as directory:
            google.always(MINT, {"delay_s": MINT_S})
            driven = load.drive(bench.programs, broker.address(), connections=CLIENTS,
                                requests=CLIENTS, trace=directory / "trace")
            if driven.answers != CLIENTS:
                raise load.Wrong(f"{driven.answers} answers of {CLIENTS}")
            mints.append(google.count(MINT))
            answered = google.calls_of(MINT)[0].answered_mono
            assert answered is not None
            samples.append(driven)
            behind.append(max((begun + took / 1e6 - answered) * 1000
                              for begun, took in driven.trace))
    table = result.table(f"{CLIENTS:,} concurrent first requests", "mints upstream", "p50 ms", "p99 ms",
                         "max ms", "last answer after Google's ms")
    table.add(Samples.of(mints).text(), *(
        Samples.of(getattr(each, name) / 1000 for each in samples).text(1)
        for name in ("p50_us", "p99_us", "max_us")), Samples.of(behind).text(1))
    result.check("mints upstream", max(mints), at_most=1, digits=0)
    result.note(f"The stand-in for Google takes {MINT_S * 1000:.0f} ms for a token, so that everybody "
                "is there before it comes.")
    return result


SCENARIO = Scenario(
    "crowd", "A crowd's first token",
    "Each round a fresh broker, and every client on a connection of its own; the times run from the "
    "client's connect.", run)
