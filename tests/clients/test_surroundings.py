# SPDX-License-Identifier: Apache-2.0
"""The variables a client needs, and a proxy that must not see the endpoint."""

from __future__ import annotations

import pytest

from tests.google.standin import Standin
from tests.integration.broker import Broker

from . import facts
from .conftest import Launcher
from .observed import MINT, Counters, endpoint
from .program import Outcome, contract_variables
from .proxy import Proxy

pytestmark = pytest.mark.only(lambda known: known.role != "agent")


def test_the_least_of_the_variables_is_enough(client: str, launch: Launcher, google: Standin,
                                              broker: Broker) -> None:
    variables = dict.fromkeys(facts.of(client).least, endpoint(broker))
    assert launch(broker, variables).call() == Outcome(text=google.state.model_text)
    assert google.count(MINT) == 1


@pytest.mark.only(lambda known: "GCE_METADATA_IP" in known.least and known.thorough)
def test_the_host_alone_is_not_found(client: str, launch: Launcher, google: Standin,
                                     broker: Broker) -> None:
    counters = Counters(broker)
    outcome = launch(broker, {"GCE_METADATA_HOST": endpoint(broker)}).call()
    assert "default credentials were not found" in outcome.error
    assert counters.since["requests"] == 0  # it pinged 169.254.169.254 and gave up
    assert google.count(MINT) == 0


def test_a_proxy_does_not_see_the_endpoint(client: str, launch: Launcher, google: Standin,
                                           broker: Broker) -> None:
    with Proxy() as proxy:
        program = launch(broker, contract_variables(endpoint(broker)) | proxy.variables)
        assert program.call() == Outcome(text=google.state.model_text)
        assert proxy.asked == []


@pytest.mark.only(lambda known: known.proxied and known.thorough)
def test_without_no_proxy_it_would(client: str, launch: Launcher, google: Standin,
                                   broker: Broker) -> None:
    variables = contract_variables(endpoint(broker))
    del variables["NO_PROXY"], variables["no_proxy"]
    with Proxy() as proxy:
        assert not launch(broker, variables | proxy.variables).call().text
        assert any(endpoint(broker).removesuffix(":80") in line for line in proxy.asked), proxy.asked
    assert google.count(MINT) == 0


@pytest.mark.only(lambda known: not known.proxied)
def test_it_asks_no_proxy_for_the_endpoint(client: str, launch: Launcher, google: Standin,
                                           broker: Broker) -> None:
    variables = contract_variables(endpoint(broker))
    del variables["NO_PROXY"], variables["no_proxy"]
    with Proxy() as proxy:
        launch(broker, variables | proxy.variables).call()  # the model is asked for, or the proxy for it
        assert not any(endpoint(broker).removesuffix(":80") in line for line in proxy.asked), proxy.asked
    assert google.count(MINT) == 1
