# SPDX-License-Identifier: Apache-2.0
"""Stand-ins, brokers, and the directory in which all that they write is kept."""

from __future__ import annotations

import itertools
import os
import resource
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.google.standin import Standin

from . import leaks
from .broker import Broker
from .deadline import FACTOR
from .http1 import Broken
from .launch import engine, inside, place  # noqa: F401 - fixtures

LEAK_CHECK = "test_zz_no_secret_leaked.py"
SAID = pytest.StashKey[list[str]]()
SUMMARY = pytest.StashKey[list[str]]()
_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SAID] = []
    config.stash[SUMMARY] = []
    config.addinivalue_line("markers", "real_time: what it sees depends on the contract's own "
                            "deadlines; of a wrapped broker, only the faults count then")
    # a thousand clients at once
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter,
                            config: pytest.Config) -> None:
    """What was run may depend on the machine: said here, and at the end of scripts/test."""
    for line in config.stash[SUMMARY]:
        terminalreporter.write_line(line)
        if "POSTERN_SUMMARY" in os.environ:
            with open(os.environ["POSTERN_SUMMARY"], "a", encoding="utf-8") as file:
                file.write(line + "\n")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """What takes a minute by the contract's own numbers is for --long."""
    is_long = collection_path.name.startswith("test_long_")
    return True if is_long and os.environ.get("POSTERN_LONG") != "1" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The search for secrets comes after everything that could write one."""
    items.sort(key=lambda item: item.path.name == LEAK_CHECK)


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, None]:
    """Under valgrind 2.5 s are soon over: such a test runs, and its broker must end cleanly."""
    outcome = yield
    if FACTOR > 1 and pyfuncitem.get_closest_marker("real_time") and outcome.excinfo and issubclass(
            outcome.excinfo[0], (AssertionError, Broken, OSError)):
        outcome.force_result(True)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Keep what pytest shows of each test, for the search."""
    outcome = yield
    report = outcome.get_result()
    item.config.stash[SAID] += [report.longreprtext, *(text for _, text in report.sections)]


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where every broker of the session writes."""
    return tmp_path_factory.mktemp("i")


@pytest.fixture(scope="session")
def said(pytestconfig: pytest.Config) -> list[str]:
    """What pytest has shown so far."""
    return pytestconfig.stash[SAID]


def new_directory(artifacts: Path, test: str) -> Path:
    """One for a broker. Its path is short: a socket's may have 107 bytes."""
    directory = artifacts / f"{next(_numbers)}"
    directory.mkdir(mode=0o755)
    (directory / "test").write_text(test + "\n")
    return directory


@pytest.fixture
def directory(artifacts: Path, request: pytest.FixtureRequest) -> Path:
    """A directory among the artifacts."""
    return new_directory(artifacts, request.node.nodeid)


@pytest.fixture
def google() -> Iterator[Standin]:
    """A Google of the test's own."""
    with Standin() as standin:
        yield standin
        leaks.note(standin.secrets())


Starter = Callable[..., Broker]


@pytest.fixture
def start(artifacts: Path, request: pytest.FixtureRequest,
          google: Standin) -> Iterator[Starter]:
    """Starts brokers, as Broker() takes arguments after the directory; each must end cleanly.

    Before the stand-in ends: hence it is asked for.
    """
    brokers: list[Broker] = []

    def start_one(google: Standin | None = None, **how: Any) -> Broker:
        broker = Broker(new_directory(artifacts, request.node.nodeid), google, **how)
        broker.start()
        brokers.append(broker)
        return broker
    yield start_one
    try:
        for broker in brokers:
            broker.finish()
    finally:
        for broker in brokers:
            broker.discard()


@pytest.fixture
def broker(start: Starter, google: Standin) -> Broker:
    """One profile `vertex`, a login of the stand-in as the source."""
    return start(google)


@pytest.fixture(scope="module")
def offline(artifacts: Path, request: pytest.FixtureRequest) -> Iterator[Broker]:
    """One for a module of tests that need no Google."""
    settings = getattr(request.module, "OFFLINE", {})
    with Broker(new_directory(artifacts, request.node.nodeid), **settings) as running:
        yield running
