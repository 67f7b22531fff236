# SPDX-License-Identifier: Apache-2.0
"""The results, for a terminal and as docs/performance.md."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence

from . import machine
from .bench import Bench, Scenario
from .figures import Check, Result, Table
from .peers import Peer

_HEAD = """# Performance

`scripts/bench --write` measures and writes this page; do not edit it. `scripts/bench` prints the same figures,
`scripts/bench --check` fails where one of the demands below does not hold.
"""

_HOW = """Everything runs on one machine, over loopback: what is measured has one processor, who asks has another.
What is compared is measured in turn (A B A B …), {rounds} rounds, so that a machine whose speed drifts moves all of
it. A figure is the median of its rounds, in brackets the smallest and the largest; a ratio is taken round by round.
Google is the stand-in of `tests/google/`. `posternd` is a release build with limits for a crowded host
(`endpoint_rate = 0`, `endpoint_connections = 2048`); otherwise it has its defaults."""


def text_table(table: Table) -> str:
    """For a terminal: columns that line up."""
    lines = [list(table.columns), *map(list, table.rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.columns))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
                     for line in lines)


def text(scenario: Scenario, result: Result) -> str:
    """One scenario for a terminal."""
    parts = [f"== {scenario.name}: {scenario.title}"]
    for table in result.tables:
        parts += [f"{table.title}:", textwrap.indent(text_table(table), "  ")]
    parts += [f"  note: {note}" for note in result.notes]
    for check in result.checks:
        parts.append(f"  {'holds' if check.holds else 'FAILS'}: {check.what}: {check.measured} "
                     f"({check.demanded})")
    return "\n".join(parts)


def failures(results: Iterable[Result]) -> list[Check]:
    """What does not hold."""
    return [check for result in results for check in result.checks if not check.holds]


def _markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _peers(peers: Sequence[Peer]) -> str:
    return "\n".join(f"* **{peer.name}**: {peer.about}" + (f" (not measured: {peer.missing})"
                                                           if peer.missing else "") + "."
                     for peer in peers)


def page(bench: Bench, peers: Sequence[Peer], results: Mapping[Scenario, Result]) -> str:
    """docs/performance.md."""
    checks = [check for result in results.values() for check in result.checks]
    parts = [_HEAD, "## How", _HOW.format(rounds=bench.rounds),
             _markdown_table(("", ""), machine.description()),
             "Measured beside:", _peers(peers), "## What must hold",
             _markdown_table(("what", "demanded", "measured", ""), (
                 (check.what, check.demanded, check.measured, "yes" if check.holds else "**no**")
                 for check in checks))]
    for scenario, result in results.items():
        parts += [f"## {scenario.title}", scenario.about]
        for table in result.tables:
            parts += [f"{table.title}:", _markdown_table(table.columns, table.rows)]
        parts += result.notes
    return "\n\n".join(part.strip() for part in parts) + "\n"
