# SPDX-License-Identifier: Apache-2.0
"""A token in one go, kept for the next call, shared by many."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.google.standin import Standin
from tests.integration.broker import Broker

from . import facts
from .conftest import Launcher
from .observed import MINT, Counters, endpoint, tokens_at_the_model
from .program import Outcome, contract_variables

pytestmark = pytest.mark.only(lambda known: known.role != "agent")


def test_the_first_call_takes_one_mint(client: str, launch: Launcher, google: Standin,
                                       broker: Broker) -> None:
    check_first_call(client, launch, google, broker)


@pytest.mark.only(lambda known: known.thorough)
def test_the_first_call_takes_one_mint_of_a_key(client: str, launch: Launcher, google: Standin,
                                                start: Callable[..., Broker]) -> None:
    google.write_service_account()
    check_first_call(client, launch, google, start(google, source={"type": "adc"}, env={
        "GOOGLE_APPLICATION_CREDENTIALS": str(google.directory / "sa.json")}))


def check_first_call(client: str, launch: Launcher, google: Standin, broker: Broker) -> None:
    """It asks for what its facts say, and the model takes the token."""
    known = facts.of(client)
    counters = Counters(broker)
    assert launch(broker).call() == Outcome(text=google.state.model_text)
    assert google.count(MINT) == 1
    assert len(tokens_at_the_model(google)) == 1
    since = counters.since
    expected = known.start + known.per_token
    assert since["requests"] == expected
    assert (since["tokens"], since["mints"], since["refused"]) == (1, 1, known.refused)


def test_the_second_call_has_the_same_token(client: str, launch: Launcher, google: Standin,
                                            broker: Broker) -> None:
    known = facts.of(client)
    program = launch(broker)
    assert program.call() == Outcome(text=google.state.model_text)
    counters = Counters(broker)
    assert program.call() == Outcome(text=google.state.model_text)
    assert counters.since["requests"] == (0 if known.caches else known.per_token)
    first, second = tokens_at_the_model(google)
    assert first == second
    assert google.count(MINT) == 1


@pytest.mark.only(lambda known: known.thorough)
def test_a_second_process_takes_no_second_mint(client: str, launch: Launcher, google: Standin,
                                               broker: Broker) -> None:
    for _ in range(2):
        assert launch(broker).call() == Outcome(text=google.state.model_text)
    first, second = tokens_at_the_model(google)
    assert first == second
    assert google.count(MINT) == 1


def test_calls_at_once_take_one_mint(client: str, launch: Launcher, google: Standin,
                                           broker: Broker) -> None:
    counters = Counters(broker)
    at_once = facts.of(client).at_once
    outcomes = launch(broker).do(f"calls {at_once}")
    assert outcomes == [Outcome(text=google.state.model_text)] * at_once
    assert google.count(MINT) == 1
    assert len(set(tokens_at_the_model(google))) == 1
    tokens = counters.since["tokens"]
    assert tokens == 1 if facts.of(client).shares else 1 <= tokens <= at_once


@pytest.mark.only(lambda known: known.streams)
def test_a_stream_has_the_token_too(client: str, launch: Launcher, google: Standin,
                                    broker: Broker) -> None:
    program = launch(broker)
    assert program.call() == Outcome(text=google.state.model_text)
    streamed = program.do("stream")[0]
    assert streamed.text.replace("|", "") == google.state.model_text and "|" in streamed.text
    first, second = tokens_at_the_model(google)
    assert first == second
    assert google.count(MINT) == 1


@pytest.mark.only(lambda known: known.thorough and not known.address)
def test_an_endpoint_is_found_by_name(client: str, launch: Launcher, google: Standin,
                                      broker: Broker) -> None:
    program = launch(broker, contract_variables(endpoint(broker, "localhost")))
    assert program.call() == Outcome(text=google.state.model_text)
    assert google.count(MINT) == 1


@pytest.mark.only(lambda known: known.project)
def test_the_project_is_known(client: str, launch: Launcher, google: Standin,
                              broker: Broker) -> None:
    assert launch(broker).do("project") == [Outcome(text="my-project")]
    assert google.count(MINT) == 0


@pytest.mark.only(lambda known: known.foreign)
def test_another_account_has_no_token_here(client: str, launch: Launcher, google: Standin,
                                           broker: Broker) -> None:
    program = launch(broker)
    outcome = program.do("foreign")[0]
    assert outcome.error and not outcome.text
    assert google.count(MINT) == 0
    assert program.call() == Outcome(text=google.state.model_text)


@pytest.mark.only(lambda known: known.identity)
def test_an_identity_token_is_not_to_be_had(client: str, launch: Launcher, google: Standin,
                                            broker: Broker) -> None:
    program = launch(broker)
    counters = Counters(broker)
    outcome = program.do("identity")[0]
    assert outcome.error and not outcome.text
    assert counters.since["requests"] > 0
    assert google.count(MINT) == 0
    assert program.call() == Outcome(text=google.state.model_text)
