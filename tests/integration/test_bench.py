# SPDX-License-Identifier: Apache-2.0
"""scripts/bench still measures: its scenarios at a small size, what they find whatever it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.bench import load, peers
from tests.bench.bench import Bench
from tests.bench.scenarios import control_flood, crowd, memory, sessions

from .broker import ROOT
from .conftest import Starter
from .http1 import request

pytestmark = pytest.mark.real_time


@pytest.fixture
def bench() -> Bench:
    """One round of little, without peers."""
    build = os.environ.get("POSTERN_BUILD") or str(ROOT / "build" / "asan")
    return Bench(Path(build, "tests", "bench").absolute(), [], 1, 0.1)


def test_sessions_are_measured(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "CHURN", 40)
    monkeypatch.setattr(sessions, "LIVE", (1, 4))
    assert [row[0] for row in sessions.run_churn(bench).tables[0].rows] == ["open", "end", "both"]
    result = sessions.run_live(bench)
    assert [row[0] for row in result.tables[0].rows] == ["1", "4"]
    assert [check.value for check in result.checks if check.what.startswith("threads")] == [1]


def test_a_crowd_is_measured(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "CLIENTS", 40)
    result = crowd.run(bench)
    assert [(check.what, check.value) for check in result.checks] == [("mints upstream", 1)]


def test_memory_and_the_control_socket_are_measured(bench: Bench,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "FEW", 40)
    monkeypatch.setattr(memory, "MANY", 400)
    monkeypatch.setattr(control_flood, "CLIENTS", 16)
    assert len(memory.run(bench).tables[0].rows) == 3
    assert len(control_flood.run(bench).tables[0].rows) == 2


@pytest.mark.parametrize("name", ["libmicrohttpd", "origin"])
def test_a_peer_is_started_and_asked(bench: Bench, name: str) -> None:
    peer = next(each for each in peers.known(bench.programs) if each.name == name)
    with bench.directory() as directory, peer.running(directory) as running:
        assert load.drive(bench.programs, running.address, connections=2, requests=10).answers == 10


def test_a_wrong_answer_is_not_measured(bench: Bench, start: Starter) -> None:
    broker = start()
    with pytest.raises(load.Wrong, match="20 of 20 failed"):
        load.drive(bench.programs, broker.address(), whole=request("/no-such-path"), requests=20)
