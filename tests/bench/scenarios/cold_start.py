# SPDX-License-Identifier: Apache-2.0
"""From nothing to the first token."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

from tests.google.standin import Standin
from tests.integration import broker as brokers
from tests.integration import configuration
from tests.integration.http1 import TOKEN, Client

from .. import load, machine
from ..bench import CROWDED, Bench, Scenario
from ..figures import Result, Samples, in_turn
from ..peers import Peer, free_port, is_ready, launched

MINT = "generateAccessToken"
STARTS_A_ROUND = 4
STEP_S = 0.0005
# Those of issue 7.
MOST_READY_MS = 30.0
MOST_AFTER_UPSTREAM_MS = 5.0


def _start(directory: Path) -> tuple[subprocess.Popen[str], tuple[str, int]]:
    with machine.staying_on(machine.SERVER), open(directory / "stderr", "ab") as log:
        process = subprocess.Popen(
            brokers.command("--config", directory / "postern.conf"), stdout=subprocess.PIPE,
            stderr=log, stdin=subprocess.DEVNULL, env=brokers.environment(directory), text=True)
    assert process.stdout is not None
    ready = process.stdout.readline()
    if not ready.startswith("ready "):
        raise load.Wrong((directory / "stderr").read_text())
    host, _, port = ready.strip().rpartition("=")[2].rpartition(":")
    return process, (host, int(port))


def _one_start(directory: Path, google: Standin) -> tuple[float, float, float]:
    """Milliseconds to ready, to the token, and from Google's answer to the token."""
    google.forget_calls()
    begun = time.monotonic()
    process, address = _start(directory)
    ready = time.monotonic()
    with machine.staying_on(machine.CLIENT), Client(address) as client:
        if client.ask(TOKEN).status != 200:
            raise load.Wrong("Postern gives no token")
        end = time.monotonic()
    process.send_signal(signal.SIGTERM)
    if process.wait(brokers.STOP_S):
        raise load.Wrong(f"posternd ended with {process.returncode}")
    answered = google.calls_of(MINT)[0].answered_mono
    assert answered is not None
    return (ready - begun) * 1000, (end - begun) * 1000, (end - answered) * 1000


def _peer_start(bench: Bench, peer: Peer) -> float:
    """Milliseconds until a peer gives a token."""
    with bench.directory() as directory:
        port = free_port()
        start = peer.start(directory, port)
        begun = time.monotonic()
        with launched(start, directory) as process:
            while not is_ready(process, ("127.0.0.1", port), directory):
                time.sleep(STEP_S)
            return (time.monotonic() - begun) * 1000


def run(bench: Bench) -> Result:
    """Start Postern and the peers in turn."""
    result = Result()
    ours: list[tuple[float, float, float]] = []
    theirs: dict[str, list[float]] = {peer.name: [] for peer in bench.peers}
    with bench.google() as google, bench.directory() as directory:
        sections = configuration.sections(directory, google, broker=CROWDED)
        (directory / "postern.conf").write_text(configuration.render(sections))
        for _, peer in in_turn([None, *bench.peers], bench.rounds):
            if peer is None:
                ours += [_one_start(directory, google) for _ in range(STARTS_A_ROUND)]
            else:
                theirs[peer.name].append(_peer_start(bench, peer))
    to_ready, to_token, after_upstream = (Samples.of(each) for each in zip(*ours, strict=True))
    table = result.table("Cold start", "server", "ready ms", "first token ms",
                         "first token after Google's answer ms")
    table.add("Postern", to_ready.text(1), to_token.text(1), after_upstream.text(1))
    for name, samples in theirs.items():
        table.add(name, "-", Samples.of(samples).text(1), "-")
    result.check("cold start to ready", to_ready.median, at_most=MOST_READY_MS, unit="ms", digits=1)
    result.check("first token after the upstream's answer", after_upstream.median,
                 at_most=MOST_AFTER_UPSTREAM_MS, unit="ms", digits=1)
    result.note("Postern mints its first token by two TLS exchanges with the stand-in for Google, which is "
                "Python and takes most of the time; the constants mint nothing, and the origin's design "
                "starts a `gcloud` that only prints.")
    return result


SCENARIO = Scenario(
    "cold-start", "Cold start",
    "From the start of the process to its ready line, to the first 200 for a token, and from the moment "
    "that Google's stand-in sends the token to that 200.", run)
