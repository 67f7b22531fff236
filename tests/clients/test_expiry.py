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
from .program import Outcome, Program

MARGIN_S = 100
RENEWED_S = 30.0

pytestmark = pytest.mark.only(lambda known: known.role != "agent")


@pytest.fixture
def short(start: Callable[..., Broker], google: Standin) -> Broker:
    """A broker whose tokens live five minutes."""
    return start(google, profiles={"vertex": {"lifetime": "5m"}})


def calls_until_renewed(program: Program, google: Standin) -> list[Outcome]:
    """What came of each call, until the model has seen two tokens."""
    outcomes = []

    def call() -> bool:
        outcomes.append(program.call())
        return len(set(tokens_at_the_model(google))) == 2
    eventually("a call with another token", call, RENEWED_S)
    return outcomes


def near_the_end(known: facts.Facts) -> bool:
    """Whether it asks for a token of `short` again before each call."""
    return (known.margin_s > MARGIN_S and not known.slow and not known.renews_aside
            and not known.again_at_once)


@pytest.mark.only(lambda known: near_the_end(known))
def test_a_token_near_its_end_is_followed_by_a_new_one(client: str, launch: Launcher,
                                                       google: Standin, short: Broker) -> None:
    check_each_call_asks(launch, google, short, MARGIN_S - 50)


@pytest.mark.only(lambda known: near_the_end(known) and known.thorough)
@pytest.mark.parametrize("life_s", [MARGIN_S + 10, 3])
def test_a_token_just_served_or_just_ending(client: str, launch: Launcher, google: Standin,
                                            short: Broker, life_s: int) -> None:
    check_each_call_asks(launch, google, short, life_s)


def check_each_call_asks(launch: Launcher, google: Standin, short: Broker, life_s: int) -> None:
    """No call fails, and the client asks before each: its own margin is larger."""
    google.script(MINT, {"life_s": life_s})
    program = launch(short)
    counters = Counters(short)
    outcomes = calls_until_renewed(program, google)
    assert outcomes == [Outcome(text=google.state.model_text)] * len(outcomes)
    assert counters.since["tokens"] == len(outcomes) > 1
    assert google.count(MINT) == 2


@pytest.mark.only(lambda known: known.renews_aside)
def test_a_token_near_its_end_is_used_meanwhile(client: str, launch: Launcher, google: Standin,
                                                short: Broker) -> None:
    google.script(MINT, {"life_s": MARGIN_S - 50})
    outcomes = calls_until_renewed(launch(short), google)
    assert outcomes == [Outcome(text=google.state.model_text)] * len(outcomes)
    assert google.count(MINT) == 2


@pytest.mark.only(lambda known: known.again_at_once)
def test_a_token_near_its_end_is_not_used(client: str, launch: Launcher, google: Standin,
                                          short: Broker) -> None:
    google.script(MINT, {"life_s": MARGIN_S - 50})
    counters = Counters(short)
    assert launch(short).call() == Outcome(text=google.state.model_text)
    assert counters.since["tokens"] == 2


@pytest.mark.only(lambda known: not known.slow)
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
