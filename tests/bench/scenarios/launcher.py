# SPDX-License-Identifier: Apache-2.0
"""What `postern run` adds to `docker run`: from the start to the command's first line."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Sequence

from tests.integration import engine as engines
from tests.integration.launch import Place, broker_in, launcher, standin_in

from .. import load
from ..bench import Bench, Scenario
from ..figures import Result, Samples, in_turn

RUNS_A_ROUND = 2
PLAIN = "docker run"
LINE = "begun"
# Those of issue 7.
MOST_ADDED_MS = {"gateway": 100.0, "inside": 300.0}


def offered() -> list[str]:
    """The ways of --attach that this launcher has."""
    said = subprocess.run([launcher(), "run", "--help"], check=True, capture_output=True,
                          text=True).stdout
    match = re.search(r"^\s+--attach ([a-z|]+)", said, re.M)
    return match[1].split("|") if match else []


def _commands(place: Place, ways: Sequence[str]) -> dict[str, list[str]]:
    inside = place.engine.namespace.prefix
    command = [engines.IMAGE, "echo", LINE]
    made = {PLAIN: [*inside, "docker", "run", "--rm", *command]}
    for way in ways:
        made[way] = [*inside, launcher(), "run", "--owner", place.owner, "--attach", way,
                     "--allow-unverified-firewall", *command]
    return made


def _first_line_ms(place: Place, command: Sequence[str]) -> float:
    begun = time.monotonic()
    with subprocess.Popen(command, env=place.environment(), cwd=place.directory,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        took_ms = (time.monotonic() - begun) * 1000
        said = process.stderr.read()
    if line.strip() != LINE or process.returncode:
        raise load.Wrong(f"{command[-5:]} ended with {process.returncode}: {said[-2000:]}")
    return took_ms


def run(bench: Bench) -> Result:
    """Plain and by the launcher, in turn."""
    result = Result()
    reason = engines.missing()
    if reason is not None:
        result.note(f"skipped: {reason}")
        return result
    ways = [way for way in MOST_ADDED_MS if way in offered()]
    for way in MOST_ADDED_MS:
        if way not in ways:
            result.note(f"--attach {way}: absent, this launcher does not offer it.")
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(engines.running("postern-bench"))
        google = stack.enter_context(standin_in(engine))
        directory = stack.enter_context(bench.directory())
        place = Place(engine, directory, stack.enter_context(broker_in(engine, directory, google)))
        commands = _commands(place, ways)
        times: dict[str, list[float]] = {name: [] for name in commands}
        for command in commands.values():
            _first_line_ms(place, command)  # what the engine does once
        for _, name in in_turn(list(commands), bench.rounds * RUNS_A_ROUND):
            times[name].append(_first_line_ms(place, commands[name]))
        place.clear()
    plain = Samples.of(times[PLAIN])
    table = result.table("From the start to the command's first line, ms", "command", "ms", "added ms")
    table.add(PLAIN, plain.text(), "-")
    for way in ways:
        added = Samples.of(a - b for a, b in zip(times[way], plain.values, strict=True))
        table.add(f"postern run --attach {way}", Samples.of(times[way]).text(), added.text())
        result.check(f"added by the launcher with --attach {way}", added.median,
                     at_most=MOST_ADDED_MS[way], unit="ms", digits=0)
    return result


SCENARIO = Scenario(
    "launcher", "The launcher beside docker run",
    "A Docker Engine of the bench's own in a network namespace that leads nowhere; the same image and "
    "command by `docker run --rm` and by `postern run`, in turn.", run)
