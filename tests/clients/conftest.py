# SPDX-License-Identifier: Apache-2.0
"""Every client, one after the other, at a broker and a stand-in. Run by scripts/clients."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.google.standin import Standin
from tests.integration.broker import Broker
from tests.integration.conftest import (  # noqa: F401
    artifacts, directory, google, pytest_runtest_makereport, said)
from tests.integration.conftest import start as plain_start  # noqa: F401
from tests.integration.conftest import pytest_configure as configure

from . import facts, results
from .observed import endpoint
from .program import Program, contract_variables
from .wire import Wire

LAST = ("test_zy_closed_table.py", "test_zz_no_secret_leaked.py")  # after all others, in this order
PROJECT_NUMBER = 123456789012
Launcher = Callable[..., Program]


def pytest_configure(config: pytest.Config) -> None:
    """As tests/integration, and the mark of this suite."""
    configure(config)
    config.pluginmanager.register(results.Recorder(), "recorder")
    config.addinivalue_line("markers", "only(holds): the clients whose facts pass holds()")


def pytest_sessionstart() -> None:
    """Clients dial 169.254.169.254 by themselves: they run where nothing but loopback is."""
    interfaces = [name for _, name in socket.if_nameindex()]
    if interfaces != ["lo"]:
        pytest.exit(f"here are interfaces {', '.join(interfaces)}; run scripts/clients test", 2)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with `client` is run for each of POSTERN_CLIENTS (all, without it)."""
    if "client" in metafunc.fixturenames:
        chosen = os.environ.get("POSTERN_CLIENTS", "").split()
        metafunc.parametrize("client", [name for name in facts.names()
                                        if not chosen or name in chosen])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """
    `only` drops the clients of which a fact does not hold, POSTERN_CLIENTS those of test_inside.py that
    it does not name; what looks at all tests is last.
    """
    chosen = os.environ.get("POSTERN_CLIENTS", "").split()

    def holds(item: pytest.Item) -> bool:
        called = getattr(item, "callspec", None)
        named = called.params.get("name") if called else None
        if named and chosen and named not in chosen:
            return False
        return all(mark.args[0](facts.of(called.params["client"]))
                   for mark in item.iter_markers("only") if called)
    dropped = [item for item in items if not holds(item)]
    config.hook.pytest_deselected(items=dropped)
    items[:] = sorted((item for item in items if item not in dropped),
                      key=lambda item: LAST.index(item.path.name) if item.path.name in LAST else -1)


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """Where the endpoint of this client must be, if that is built in: the namespace is the test's own."""
    called = getattr(request.node, "callspec", None)
    client = called.params.get("client") if called else None
    address = facts.of(client).address if client else ""
    if not address:
        yield {}
        return
    network = f"{address.rpartition(':')[0]}/32"
    on_lo = (network, "dev", "lo")
    subprocess.run(["ip", "address", "add", *on_lo], check=True)
    yield {"listen": address, "allow_peers": network}
    subprocess.run(["ip", "address", "del", *on_lo], check=True)


@pytest.fixture
def start(plain_start: Callable[..., Broker], place: dict[str, str]) -> Callable[..., Broker]:  # noqa: F811
    """As tests/integration; a project's number is in each profile, for gcloud."""
    def start_one(*args: Any, profiles: Mapping[str, Mapping[str, Any]] | None = None,
                  **how: Any) -> Broker:
        numbered = {name: {"project_number": PROJECT_NUMBER, **place, **profile}
                    for name, profile in (profiles or {"vertex": {}}).items()}
        return plain_start(*args, profiles=numbered, **how)
    return start_one


@pytest.fixture
def broker(start: Callable[..., Broker], google: Standin) -> Broker:
    """One profile with everything as it is by default."""
    return start(google)


@pytest.fixture(scope="session")
def wire(pytestconfig: pytest.Config) -> Iterator[Wire]:
    """What all clients ask."""
    with Wire() as listening:
        yield listening
        pytestconfig.pluginmanager.get_plugin("recorder").note(listening.requests)


@pytest.fixture
def launch(client: str, directory: Path, google: Standin, wire: Wire) -> Iterator[Launcher]:
    """Starts the client at a broker, with the variables of the contract or with others."""
    with contextlib.ExitStack() as running:
        running.callback(wire.forget)

        def launch_one(broker: Broker, variables: dict[str, str] | None = None) -> Program:
            wire.watch(broker.address()[1], client)
            if variables is None:
                variables = contract_variables(endpoint(broker))
            return running.enter_context(Program(
                client, directory, {"GOOGLE_VERTEX_BASE_URL": google.http_url,
                                    "GOOGLE_STORAGE_URL": google.url, **variables}))
        yield launch_one
