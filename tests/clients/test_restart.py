# SPDX-License-Identifier: Apache-2.0
"""A broker that ends and comes back under a running client."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.google.standin import Standin
from tests.integration.broker import Broker

from . import facts
from .conftest import Launcher
from .observed import MINT, first_good, tokens_at_the_model
from .program import Outcome

pytestmark = pytest.mark.only(lambda known: known.role != "agent")

LIFE_S = 50  # of a token that all but a few clients ask for again


def keep_port(broker: Broker) -> None:
    """Have it come back where it was."""
    host, port = broker.address("vertex")
    broker.sections["profile vertex"]["listen"] = f"{host}:{port}"


@pytest.mark.only(lambda known: not known.slow)
def test_a_client_goes_on_while_the_broker_is_killed(client: str, launch: Launcher,
                                                     google: Standin, broker: Broker) -> None:
    keep_port(broker)
    program = launch(broker)
    good = Outcome(text=google.state.model_text)
    assert program.call() == good
    broker.kill()
    alone = program.call()
    assert alone == good if facts.of(client).caches else not alone.text
    broker.start()
    assert program.call() == good
    assert launch(broker).call() == good
    assert google.count(MINT) == 2  # of each broker's life, one


@pytest.mark.only(lambda known: known.margin_s > LIFE_S and known.thorough
                  and not known.renews_aside)
def test_a_client_that_needs_a_token_finds_the_new_broker(client: str, launch: Launcher,
                                                          google: Standin,
                                                          start: Callable[..., Broker]) -> None:
    broker = start(google, profiles={"vertex": {"lifetime": "5m"}})
    keep_port(broker)
    google.script(MINT, {"life_s": LIFE_S})
    program = launch(broker)
    assert program.call() == Outcome(text=google.state.model_text)
    assert broker.stop() == 0
    broker.start()
    # over the connection of before, if it kept one
    assert program.call() == Outcome(text=google.state.model_text)
    first, second = tokens_at_the_model(google)
    assert first != second


@pytest.mark.only(lambda known: known.thorough)
def test_a_client_that_came_first_finds_the_broker(client: str, launch: Launcher,
                                                   google: Standin, broker: Broker) -> None:
    keep_port(broker)
    assert broker.stop() == 0
    program = launch(broker)
    assert program.call().error
    broker.start()
    good = Outcome(text=google.state.model_text)
    if facts.of(client).remembers_absence:
        assert program.call().error
        program = launch(broker)
    assert first_good(program) == good
    assert google.count(MINT) == 1
