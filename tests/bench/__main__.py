# SPDX-License-Identifier: Apache-2.0
"""Measures Postern beside its peers in one run.

Without names all scenarios run. Peers that are not installed are skipped and named.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tests.integration.broker import ROOT

from . import machine, peers, report, scenarios
from .bench import Bench, Scenario
from .figures import Result

PAGE = ROOT / "docs" / "performance.md"


def _arguments() -> argparse.Namespace:
    names = "\n".join(f"  {each.name:<15} {each.title}" for each in scenarios.ALL.values())
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog=f"scenarios:\n{names}")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="measure these only")
    parser.add_argument("--rounds", type=int, default=5, help="of each comparison (%(default)s)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each load (%(default)s)")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND",
                        help="one more peer; {port} and {directory} stand for what it is given")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    parser.add_argument("--check", action="store_true", help="fail where a demand does not hold")
    arguments = parser.parse_args()
    unknown = set(arguments.scenarios) - set(scenarios.ALL)
    if unknown:
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}; see --help")
    if arguments.write and arguments.scenarios:
        parser.error("--write wants all scenarios, for it writes the whole page")
    if arguments.rounds < 1:
        parser.error("--rounds wants 1 or more")
    return arguments


def main() -> int:
    """Run what is wanted; the exit status."""
    arguments = _arguments()
    programs = Path(os.environ["POSTERN_BUILD"]).absolute() / "tests" / "bench"
    known = [*peers.known(programs), *map(peers.given, arguments.peer)]
    bench = Bench(programs, [peer for peer in known if not peer.missing], arguments.rounds,
                  arguments.seconds)
    print("; ".join(f"{name} {value}" for name, value in machine.description()))
    for peer in known:
        print(f"peer {peer.name}: {'skipped, ' + peer.missing if peer.missing else peer.about}")
    results: dict[Scenario, Result] = {}
    for name in arguments.scenarios or scenarios.ALL:
        scenario = scenarios.ALL[name]
        results[scenario] = scenario.run(bench)
        print(report.text(scenario, results[scenario]), flush=True)
    failed = report.failures(results.values())
    print(f"{len(failed)} of {sum(len(result.checks) for result in results.values())} demands do not "
          "hold")
    if arguments.write:
        PAGE.write_text(report.page(bench, known, results))
        print(f"wrote {PAGE.relative_to(ROOT)}")
    return 1 if arguments.check and failed else 0


if __name__ == "__main__":
    sys.exit(main())
