# SPDX-License-Identifier: Apache-2.0
"""Agents: whole turns, with no key and no credential file, told what the launcher's preset tells."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.google.standin import USER, Standin
from tests.integration.broker import Broker
from tests.integration.deadline import eventually

from .agents import TURN_S, Agent
from .observed import MINT, Counters, calls_of_the_model, endpoint, tokens_at_the_model
from .program import Outcome, contract_variables
from .proxy import Proxy
from .test_refusal import assert_told
from .test_restart import keep_port
from .wire import Wire

pytestmark = pytest.mark.only(lambda known: known.role == "agent")

LIBRARY_TRIES = 4  # of google-auth-library for Node, where the answer is 503
LINK_LOCAL = "169.254.169.254"  # of the namespace that scripts/clients makes


@pytest.fixture
def agent(client: str, directory: Path, google: Standin, wire: Wire) -> Iterator[Agent]:
    """One of them, in an empty home."""
    with Agent(client, directory, google, wire) as made:
        yield made


@pytest.fixture
def machine() -> Iterator[Proxy]:
    """The machine's own metadata server, which no agent shall ask: here it could be reached."""
    def address(what: str) -> None:
        subprocess.run(["ip", "address", what, f"{LINK_LOCAL}/32", "dev", "lo"], check=True)
    address("add")
    try:
        with Proxy((LINK_LOCAL, 80)) as listening:
            yield listening
    finally:
        address("delete")


def good(google: Standin) -> Outcome:
    """The answer of the model, whole."""
    return Outcome(text=google.state.model_text)


def test_each_turn_takes_the_token_that_there_is(agent: Agent, google: Standin,
                                                 broker: Broker) -> None:
    keep_port(broker)
    for mints, restarted in [(1, False), (1, False), (2, True)]:
        if restarted:
            assert broker.stop() == 0
            broker.start()
        counters = Counters(broker)
        assert agent.turn(broker) == good(google)
        since = counters.since
        # what it looks for at its start may not come to its end within the turn
        assert 0 <= since["requests"] - agent.facts.per_token <= agent.facts.start
        assert since["refused"] == 0
        assert google.count(MINT) == len(set(tokens_at_the_model(google))) == mints
    assert any(call.kind.startswith("stream") for call in calls_of_the_model(google))


def test_a_turn_goes_on_whatever_becomes_of_its_tokens(agent: Agent, google: Standin,
                                                       start: Callable[..., Broker]) -> None:
    """The first mint fails, the token of the second ends while the agent is at work with a tool."""
    short = start(google, profiles={"vertex": {"lifetime": "5m"}})
    counters = Counters(short)
    # Node's library asks again from 300 s on, the broker mints from 100 s on
    google.script(MINT, {"status": 503}, {"life_s": 90 if agent.facts.renews else 250})
    tool, argument = agent.facts.reads
    for name in ("first", "second"):
        (agent.work / name).write_text(f"this stands in the {name} file\n")
        google.call_tool(tool, **{argument: str(agent.work / name)})
    assert agent.turn(short) == good(google)
    last = json.dumps(calls_of_the_model(google)[-1].body)
    assert "this stands in the first file" in last and "this stands in the second file" in last
    tokens = tokens_at_the_model(google)
    assert (tokens[0] != tokens[-1]) == agent.facts.renews
    assert google.count(MINT) == (3 if agent.facts.renews else 2)
    assert agent.facts.renews or counters.since["tokens"] == 1


def test_a_denial_is_shown_and_ends_the_turn(client: str, agent: Agent, google: Standin,
                                             broker: Broker) -> None:
    google.revoke(USER, google.account)
    counters = Counters(broker)
    assert_told(client, broker, agent.turn(broker), "the broker may not use this account")
    assert calls_of_the_model(google) == []
    assert google.count(MINT) == 1
    assert 1 <= counters.since["requests"] <= agent.facts.start + agent.facts.denied


@pytest.mark.only(lambda known: known.tries)
def test_a_lasting_failure_is_shown_and_ends_the_turn(client: str, agent: Agent, google: Standin,
                                                      broker: Broker) -> None:
    google.always(MINT, {"status": 503})
    counters = Counters(broker)
    assert_told(client, broker, agent.turn(broker), "credential temporarily unavailable")
    assert calls_of_the_model(google) == []
    # the requests of its start are tried again by the library, that of the turn by the agent too
    more = counters.since["requests"] - agent.facts.tries
    assert 0 <= more <= LIBRARY_TRIES * agent.facts.start


def test_the_host_alone_is_enough_and_no_proxy_sees_it(agent: Agent, google: Standin,
                                                       broker: Broker) -> None:
    """A proxy sees what the agent reports of itself or looks for news: refusing that does no harm."""
    variables = dict.fromkeys(agent.facts.least, endpoint(broker)) | {"NO_PROXY": "127.0.0.1"}
    with Proxy() as proxy:
        assert agent.turn(broker, variables | proxy.variables) == good(google)
        assert not [line for line in proxy.asked if re.search(r"127\.0\.0\.1|metadata", line)]
    assert google.count(MINT) == 1


def test_without_no_proxy_it_would(agent: Agent, google: Standin, broker: Broker) -> None:
    variables = contract_variables(endpoint(broker))
    del variables["NO_PROXY"], variables["no_proxy"]
    with Proxy() as proxy:
        assert agent.turn(broker, variables | proxy.variables).error
        assert any(endpoint(broker) in line for line in proxy.asked), proxy.asked
    assert google.calls == []


def test_without_its_endpoint_it_fails_closed(agent: Agent, google: Standin, broker: Broker,
                                              machine: Proxy) -> None:
    variables = contract_variables(endpoint(broker))
    keep_port(broker)
    assert broker.stop() == 0
    turn = agent.start(broker, variables)
    if not agent.facts.persists:
        assert turn.wait().error
    assert google.state.model_text not in turn.end_when_it_says(agent.facts.gone)
    assert google.calls == [] and machine.asked == []
    broker.start()


def test_without_a_session_it_would_ask_the_machine(agent: Agent, google: Standin, broker: Broker,
                                                    machine: Proxy) -> None:
    turn = agent.start(broker, {})
    eventually("a request to the machine's metadata server", lambda: machine.asked, TURN_S)
    turn.end()
    assert google.calls == []


def test_without_its_preset_it_asks_for_no_token(agent: Agent, google: Standin,
                                                 broker: Broker) -> None:
    assert agent.turn(broker, preset=False).error
    assert google.calls == []
