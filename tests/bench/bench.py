# SPDX-License-Identifier: Apache-2.0
"""What every scenario is given: the programs, how long to measure, and brokers to measure."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.google.standin import Standin
from tests.integration.broker import Broker

from . import machine
from .figures import Result
from .peers import Peer

# What an operator of a crowded bastion sets; the rate is what is measured, so it is not limited.
CROWDED: dict[str, Any] = {"endpoint_rate": 0, "endpoint_connections": 2048, "max_sessions": 4096,
                           "max_sessions_per_user": 4096, "log_level": "info"}


@dataclass(frozen=True)
class Bench:
    """One run of scripts/bench."""

    programs: Path  # of tests/bench, in the build tree
    peers: Sequence[Peer]  # those at hand
    rounds: int
    seconds: float  # of one load

    @contextlib.contextmanager
    def directory(self) -> Iterator[Path]:
        """An empty one; its path is short, for sockets have 107 bytes."""
        made = Path(tempfile.mkdtemp(prefix="pb-"))
        try:
            yield made
        finally:
            shutil.rmtree(made)

    @contextlib.contextmanager
    def google(self) -> Iterator[Standin]:
        """A Google of the bench's own."""
        with self.directory() as made, Standin(made) as standin:
            yield standin

    @contextlib.contextmanager
    def broker(self, google: Standin | None = None, *, broker: dict[str, Any] | None = None,
               **settings: Any) -> Iterator[Broker]:
        """A posternd on the processor of what is measured; offline without a Google."""
        with self.directory() as made, Broker(
                made, google, prefix=machine.on_server([]), broker={**CROWDED, **(broker or {})},
                **settings) as running:
            yield running


@dataclass(frozen=True)
class Scenario:
    """One thing that is measured."""

    name: str
    title: str
    about: str  # how it is measured
    run: Callable[[Bench], Result]
