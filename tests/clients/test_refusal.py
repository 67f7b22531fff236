# SPDX-License-Identifier: Apache-2.0
"""What a client makes of a mint that fails, and what its user sees."""

from __future__ import annotations

import re

import pytest

from tests.google.standin import USER, Standin
from tests.integration.broker import Broker

from . import facts
from .conftest import Launcher
from .observed import MINT, Counters, calls_of_the_model, first_good, tokens_at_the_model
from .program import Outcome

pytestmark = pytest.mark.only(lambda known: known.role != "agent")


def assert_told(client: str, broker: Broker, outcome: Outcome, description: str) -> None:
    """The user sees why, with a reference that leads to the whole story in log and audit."""
    assert outcome.error and not outcome.text
    if not facts.of(client).tells:
        return
    told = re.search(re.escape(description) + r" \(ref ([0-9a-f]{8})\)", outcome.error)
    assert told, outcome.error
    assert told[1] in broker.log
    assert [line for line in broker.audit if line.get("ref") == told[1]]


def test_a_denial_reaches_the_user(client: str, launch: Launcher, google: Standin,
                                   broker: Broker) -> None:
    known = facts.of(client)
    google.revoke(USER, google.account)
    counters = Counters(broker)
    outcome = launch(broker).call()
    assert_told(client, broker, outcome, "the broker may not use this account")
    assert "iam.serviceAccounts.getAccessToken" not in outcome.error  # upstream's words
    assert calls_of_the_model(google) == []
    assert google.count(MINT) == 1
    since = counters.since  # a denial is not tried again, but by a client that knows no better
    expected = known.start + known.per_token - 1 + known.denied
    assert since["requests"] == expected
    assert (since["tokens"], since["mint_failures"]) == (0, 1)


@pytest.mark.only(lambda known: not known.slow)
def test_a_passing_failure_passes(client: str, launch: Launcher, google: Standin,
                                       broker: Broker) -> None:
    google.script(MINT, {"status": 503})
    counters = Counters(broker)
    program, known = launch(broker), facts.of(client)
    outcome = program.call()
    seen = known.tries == 1 or known.hasty and outcome.error != ""
    if seen:
        assert_told(client, broker, outcome, "credential temporarily unavailable")
        broker.until_token()
        outcome = first_good(program)
    assert outcome == Outcome(text=google.state.model_text)
    assert google.count(MINT) == 2
    assert len(tokens_at_the_model(google)) == 1
    assert counters.since["tokens"] == (2 if seen else 1)
    assert counters.since["mint_failures"] == 1


@pytest.mark.only(lambda known: known.thorough)
def test_a_lasting_failure_reaches_the_user(client: str, launch: Launcher, google: Standin,
                                            broker: Broker) -> None:
    known = facts.of(client)
    google.always(MINT, {"status": 503})
    counters = Counters(broker)
    assert_told(client, broker, launch(broker).call(), "credential temporarily unavailable")
    assert calls_of_the_model(google) == []
    expected = known.start + known.per_token - 1 + known.tries
    assert counters.since["requests"] == expected
    # each try of the client begins at most one mint: the broker waits between them
    assert 1 <= google.count(MINT) <= known.tries
