# SPDX-License-Identifier: Apache-2.0
"""What a client is known to do. Each client's folder has its own in its facts.py."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Facts:
    """One client. The tests hold it, and the broker, to this."""

    command: tuple[str, ...]  # {cache}: where it is installed, {here}: its folder
    start: int  # metadata requests before the first token, once a process
    per_token: int  # metadata requests for one token, the token's own among them
    tries: int  # token requests while the answer is 503
    least: tuple[str, ...]  # the variables without which it finds no endpoint
    margin_s: float = float("inf")  # a token with so little left is asked for again
    shares: bool = False  # calls at the same time share one token request
    identity: bool = False  # has a call that asks for an ID token
    streams: bool = False
    # of the application, beside those of the endpoint
    application: Mapping[str, str] = field(default_factory=dict)

    @property
    def caches(self) -> bool:
        """Whether it keeps a token from one call to the next."""
        return self.margin_s != float("inf")


def names() -> list[str]:
    """All clients, by folder."""
    return sorted(path.parent.name for path in HERE.glob("*/facts.py"))


def of(name: str) -> Facts:
    """The facts of one."""
    facts: Facts = importlib.import_module(f".{name}.facts", __package__).FACTS
    return facts
