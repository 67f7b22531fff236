# SPDX-License-Identifier: Apache-2.0
"""Tokens that end: a profile with lifetime = 5m, whose margin is then 100 s."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.google.standin import Standin
from tests.integration.broker import Broker
from tests.integration.deadline import eventually

from . import facts
from .conftest import Launcher
from .observed import MINT, Counters, tokens_at_the_model
from .program import Outcome

MARGIN_S = 100

pytestmark = pytest.mark.only(lambda known: known.role != "agent")


@pytest.fixture
def short(start: Callable[..., Broker], google: Standin) -> Broker:
    """A broker whose tokens live five minutes."""
    return start(google, profiles={"vertex": {"lifetime": "5m"}})


@pytest.mark.parametrize("life_s", [MARGIN_S + 10, MARGIN_S - 50, 3])
def test_a_token_near_its_end_is_followed_by_a_new_one(client: str, launch: Launcher,
                                                       google: Standin, short: Broker,
                                                       life_s: int) -> None:
    google.script(MINT, {"life_s": life_s})
    program = launch(short)
    counters = Counters(short)
    outcomes = []

    def call() -> bool:
        outcomes.append(program.call())
        return len(set(tokens_at_the_model(google))) == 2
    eventually("a call with another token", call)
    # no call failed in between, and the client asked for each: its own margin is larger
    assert outcomes == [Outcome(text=google.state.model_text)] * len(outcomes)
    assert counters.since["tokens"] == len(outcomes) > 1
    assert google.count(MINT) == 2


def test_a_token_of_five_minutes_takes_one_mint(client: str, launch: Launcher, google: Standin,
                                                short: Broker) -> None:
    program = launch(short)
    counters = Counters(short)
    for _ in range(3):
        assert program.call() == Outcome(text=google.state.model_text)
    # a client whose own margin is larger asks each time
    assert counters.since["tokens"] == (1 if facts.of(client).margin_s < 299 else 3)
    assert google.count(MINT) == 1
    assert len(set(tokens_at_the_model(google))) == 1
