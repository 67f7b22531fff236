# SPDX-License-Identifier: Apache-2.0
"""The exit status of `postern run`: the command's own, or one that says whose fault it is."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from .engine import Engine
from .launch import Place


@pytest.fixture(params=["gateway", "inside"])
def place(place: Place, request: pytest.FixtureRequest) -> Place:
    """On both ways."""
    place.attach = request.param
    return place


@pytest.mark.parametrize("script, status", [
    ("exit 0", 0), ("exit 1", 1), ("exit 42", 42), ("exit 125", 125), ("kill -9 $$", 137),
    ("kill -TERM $$", 143),
])
def test_the_command_s_own_status_is_passed_on_in_silence(place: Place, script: str,
                                                          status: int) -> None:
    ran = place.sh(script)
    assert (ran.status, ran.err) == (status, "")
    assert place.is_clean()


def test_126_is_not_executable(place: Place) -> None:
    assert place.run("/bin/not-executable").status == 126
    assert place.is_clean()


def test_127_is_not_found(place: Place) -> None:
    assert place.run("no-such-command").status == 127
    assert place.is_clean()


def test_125_is_an_engine_that_failed_before_the_command(place: Place) -> None:
    ran = place.run("true", image="no-such-image:1")
    assert ran.status == 125
    assert "postern: the engine failed before the command ran" in ran.err
    assert place.is_clean()


def test_125_is_an_engine_that_does_not_answer(place: Place) -> None:
    ran = place.run("true", env={"DOCKER_HOST": "unix:///nonexistent/docker.sock"})
    assert ran.status == 125
    assert "does not answer" in ran.err
    assert not place.broker.audit_of("session.open")


def test_125_is_an_engine_that_is_not_there(place: Place) -> None:
    ran = place.run("true", env={"PATH": str(place.directory)})
    assert ran.status == 125
    assert "no program docker in PATH" in ran.err


@pytest.mark.parametrize("place", ["gateway"], indirect=True)
def test_125_is_a_sandbox_that_never_gets_an_address(place: Place) -> None:
    ran = place.run("sleep", "60", options=["--network", "none"])
    assert ran.status == 125, ran
    assert "has no address" in ran.err
    assert place.is_clean()


def test_124_is_a_command_that_took_too_long(place: Place) -> None:
    ran = place.run("sleep", "60", options=["--timeout", "2s"])
    assert ran.status == 124
    assert "timed out after 2 s" in ran.err
    assert place.is_clean()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_128_and_more_is_a_signal_that_ended_it(place: Place, number: signal.Signals) -> None:
    run = place.start("sleep", "60")
    place.running()
    run.signal(number)
    assert run.wait().status == 128 + number
    assert place.is_clean()


def test_3_is_a_profile_that_is_not_there(place: Place) -> None:
    ran = place.run("true", options=["--profile", "nobody"])
    assert ran.status == 3
    assert '"nobody"' in ran.err
    assert not place.containers()


def test_3_is_an_option_that_would_open_the_sandbox(place: Place) -> None:
    assert place.run("true", options=["--network", "host"]).status == 3
    assert not place.broker.audit_of("session.open")


def test_5_is_a_preflight_that_failed(place: Place) -> None:
    place.google.disable(place.google.account)
    ran = place.run("true", options=["--preflight", "mint"])
    assert ran.status == 5
    assert "mint_failed" in ran.err
    assert place.is_clean()


def test_4_is_no_broker(engine: Engine, directory: Path) -> None:
    place = Place(engine, directory)
    ran = place.run("true", env={"POSTERN_CONTROL": str(directory / "nothing.sock")})
    assert ran.status == 4
    assert "no broker answers" in ran.err
    assert not place.containers() and not place.left()


def test_2_is_an_option_that_is_none(place: Place) -> None:
    assert place.run("true", options=["--nonsense"]).status == 2
