# SPDX-License-Identifier: Apache-2.0
"""What a scenario gives: samples with their spread, tables of them, and what must hold."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Samples:
    """One figure, once a round."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float]) -> Samples:
        """From any values; at least one."""
        made = tuple(values)
        if not made:
            raise ValueError("no samples")
        return cls(made)

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        """The smallest."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The largest."""
        return max(self.values)

    def percentile(self, share: float) -> float:
        """The smallest that so large a share does not exceed."""
        return sorted(self.values)[max(0, math.ceil(len(self.values) * share) - 1)]

    def over(self, other: Samples) -> Samples:
        """The ratio of the two, round by round: a machine that slows down slows both."""
        return Samples.of(a / b for a, b in zip(self.values, other.values, strict=True))

    def text(self, digits: int = 0) -> str:
        """The median and, where there is any, the spread."""
        middle = f"{self.median:,.{digits}f}"
        if len(self.values) == 1:
            return middle
        return f"{middle} ({self.low:,.{digits}f} to {self.high:,.{digits}f})"


@dataclass
class Table:
    """Rows of cells, each a text."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        """One more row."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.title}: {len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(cells)


@dataclass(frozen=True)
class Check:
    """What must hold."""

    what: str
    value: float
    bound: float
    unit: str = ""
    digits: int = 2
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether it does."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    @property
    def measured(self) -> str:
        """The value with its unit."""
        return f"{self.value:,.{self.digits}f} {self.unit}".strip()

    @property
    def demanded(self) -> str:
        """The bound with its unit."""
        return f"{'at least' if self.at_least else 'at most'} {self.bound:,g} {self.unit}".strip()


@dataclass
class Result:
    """All of one scenario."""

    tables: list[Table] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def table(self, title: str, *columns: str) -> Table:
        """A new table of this result."""
        made = Table(title, columns)
        self.tables.append(made)
        return made

    def check(self, what: str, value: float, *, at_most: float | None = None,
              at_least: float | None = None, unit: str = "", digits: int = 2) -> None:
        """One more thing that must hold."""
        bound = at_most if at_least is None else at_least
        if bound is None:
            raise ValueError(f"{what}: no bound")
        self.checks.append(Check(what, value, bound, unit, digits, at_least is not None))

    def note(self, text: str) -> None:
        """What the reader must know to read the figures."""
        self.notes.append(text)


def in_turn(subjects: Sequence[T], rounds: int) -> Iterable[tuple[int, T]]:
    """A B A B …: every subject once a round."""
    for number in range(rounds):
        for subject in subjects:
            yield number, subject
