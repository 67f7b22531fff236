# SPDX-License-Identifier: Apache-2.0
"""The door's share of the time to an agent's first line.

A real engine of its own, in a network namespace that leads nowhere. `postern run` with the endpoint inside, by
the gateway, and the engine's own `run` take turns (A B C A B C ...), so that a machine whose speed drifts moves
all; the share is taken round by round, and its median must be under 200 ms.

    python3 -m tests.bench.door_share [--rounds N] [--check]

The programs are those of POSTERN_BUILD, else of build/bench. It needs root.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("POSTERN_BUILD", str(ROOT / "build" / "bench"))

from tests.integration import engine as engines  # noqa: E402 - they read the variable
from tests.integration.broker import Broker  # noqa: E402
from tests.integration.engine import IMAGE, Engine  # noqa: E402
from tests.integration.launch import Place  # noqa: E402

MOST_SHARE_MS = 200.0
# The first rounds fill the caches of the kernel and of the engine.
WARMING_ROUNDS = 1


def first_line_ms(command: list[str], environment: dict[str, str]) -> float:
    """From the start of the program to the first line of what it runs; its end is not counted."""
    begun = time.monotonic()
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        ended = time.monotonic()
        said = process.stderr.read()
        if process.wait() or line != "first\n":
            raise RuntimeError(f"{command[0]} ended with {process.returncode}: {said}")
    return (ended - begun) * 1000


class Bench:
    """What takes turns."""

    def __init__(self, engine: Engine, place: Place) -> None:
        self.engine, self.place = engine, place
        launcher = Path(os.environ["POSTERN_BUILD"], "sandbox", "postern").absolute()
        self._launcher = [*engine.namespace.prefix, str(launcher)]
        self.ways: dict[str, Callable[[], float]] = {
            "docker run": self._plain,
            "postern run --attach gateway": lambda: self._postern("gateway"),
            "postern run --attach inside": lambda: self._postern("inside"),
        }

    def _plain(self) -> float:
        """As a launcher would, without anything of ours."""
        return first_line_ms(
            [*self.engine.namespace.prefix, "docker", "run", "--rm", "--init", "--cap-drop=ALL",
             "--security-opt=no-new-privileges", IMAGE, "echo", "first"],
            self.place.environment())

    def _postern(self, attach: str) -> float:
        return first_line_ms(
            [*self._launcher, "run", "--owner", self.place.owner, "--attach", attach,
             "--allow-unverified-firewall", IMAGE, "echo", "first"],
            self.place.environment())

    def measure(self, rounds: int) -> dict[str, list[float]]:
        """The times of each, round by round."""
        times: dict[str, list[float]] = {name: [] for name in self.ways}
        for number in range(WARMING_ROUNDS + rounds):
            for name, way in self.ways.items():
                elapsed_ms = way()
                if number >= WARMING_ROUNDS:
                    times[name].append(elapsed_ms)
        return times


def report(times: dict[str, list[float]]) -> float:
    """Prints them, and returns the median of the share."""
    for name, found in times.items():
        print(f"{name:<30} median {statistics.median(found):6.0f} ms"
              f"  ({min(found):.0f} to {max(found):.0f})")
    names = list(times)
    shares = [inside - other for inside, other in zip(times[names[-1]], times[names[-2]], strict=True)]
    share = statistics.median(shares)
    print(f"the door's share, against {names[-2]}: median {share:.0f} ms"
          f"  ({min(shares):.0f} to {max(shares):.0f}), of {MOST_SHARE_MS:.0f} ms at most")
    return share


def main() -> int:
    """0: the share is small enough, or nobody asked for that."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--check", action="store_true", help="fail where the share is too large")
    arguments = parser.parse_args()
    reason = engines.missing()
    if reason is not None:
        print(f"door_share: {reason}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="pb-") as folder, \
            engines.running("postern-bench") as engine, \
            Broker(Path(folder), prefix=engine.namespace.prefix_with_sysfs,
                   profiles={"vertex": {"listen": None}}) as broker:
        place = Place(engine, Path(folder), broker)
        share = report(Bench(engine, place).measure(arguments.rounds))
    return 1 if arguments.check and share >= MOST_SHARE_MS else 0


if __name__ == "__main__":
    sys.exit(main())
