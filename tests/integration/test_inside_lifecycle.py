# SPDX-License-Identifier: Apache-2.0
"""Whoever ends first: without its door a sandbox reaches nothing, and neither is left over."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from . import engine as engines
from .deadline import eventually
from .engine import Engine
from .launch import ASK, Launch, Place, Ran, broker_in, standin_in
from .test_run_lifecycle import ASK_ON, reaper_of

# Of the issue: what a killed launcher leaves is gone as soon as without a door, and one container's time.
LEFT_S = 4.0
SANDBOXES = 50
# The machine makes so many at a time; all of them are there together in the end.
AT_A_TIME = 6
REFUSED = f"while {ASK} >one; do cat one >>tokens; echo >>tokens; sleep 0.1; done; echo >refused; sleep 60"


def is_restarted(place: Place, first: str) -> bool:
    """Whether a line of `tokens` is another token than the first."""
    return place.workspace_file("tokens").splitlines()[-1][:60] != first[:60]


def test_a_door_that_is_killed_takes_the_endpoint_the_session_and_the_run_with_it(
        inside: Place) -> None:
    run = inside.start_sh(f"trap '' TERM; {REFUSED}", options=[
        "--workspace", inside.workspace, "--engine-arg", "--stop-timeout=3"])
    inside.workspace_file("tokens")
    inside.engine.docker("kill", inside.door())
    inside.workspace_file("refused")
    ran = run.wait()
    assert ran.status == 4
    assert "its door ended" in ran.err
    assert inside.broker.audit_of("session.close")
    assert inside.is_clean()


def test_a_sandbox_that_is_killed_takes_its_door_with_it(inside: Place) -> None:
    run = inside.start("sleep", "60")
    inside.engine.docker("kill", inside.running())
    assert run.wait().status == 137
    assert inside.is_clean()


def test_a_killed_launcher_leaves_neither(inside: Place) -> None:
    run = inside.start_sh("trap '' TERM; sleep 60")
    inside.running()
    assert len(inside.sessions()) == 1 and len(inside.containers()) == 2
    run.signal(signal.SIGKILL)
    eventually("nothing left", inside.is_clean, LEFT_S)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("after_ms", range(100, 2500, 400))
def test_a_launcher_that_ends_at_any_moment_leaves_neither(
        inside: Place, after_ms: int, number: signal.Signals) -> None:
    run = inside.start("sleep", "60")
    time.sleep(after_ms / 1000)  # the moment is what is tested
    run.signal(number)
    assert run.wait().status in (-number, 128 + number)
    eventually("nothing left", inside.is_clean, LEFT_S)


def test_the_next_run_sweeps_both_after_a_crash_of_launcher_and_reaper(inside: Place) -> None:
    run = inside.start("sleep", "60")
    sandbox, door = inside.running(), inside.door()
    os.kill(reaper_of(run), signal.SIGKILL)
    run.signal(signal.SIGKILL)
    run.process.wait()
    assert set(inside.containers()) == {sandbox, door}
    # The broker ends the lease, and with it the door: nobody is served.
    eventually("the end of the door",
               lambda: not inside.engine.inspect(door)["State"]["Running"], 5.0)
    ran = inside.run("true")
    assert ran.status == 0
    assert {sandbox[:12], door[:12]} <= set(ran.err.split())
    assert inside.is_clean()


@pytest.mark.parametrize("crash", [False, True])
def test_the_next_token_comes_from_a_broker_that_was_started_again(inside: Place,
                                                                    crash: bool) -> None:
    run = inside.start_sh(ASK_ON, options=["--workspace", inside.workspace])
    first = inside.workspace_file("tokens").splitlines()[0]
    before, door = inside.sessions()[0], inside.door()
    if crash:
        inside.broker.kill()
    else:
        assert inside.broker.stop() == 0
    inside.broker.start()
    eventually("another token", lambda: is_restarted(inside, first), 20.0)
    after = inside.sessions()[0]
    assert after["id"] != before["id"] and inside.door() == door
    run.signal(signal.SIGTERM)
    ran = run.wait()
    assert ran.status == 143
    assert "the broker is back" in ran.err
    assert inside.is_clean()


def test_a_broker_that_stays_away_ends_the_run_after_ten_seconds(inside: Place) -> None:
    run = inside.start("sleep", "60")
    inside.running()
    inside.broker.kill()
    since = time.monotonic()
    ran = run.wait()
    assert ran.status == 4
    assert time.monotonic() - since > 9.0
    assert not inside.containers() and not inside.left()
    inside.broker.start()


def test_a_session_that_is_closed_by_hand_ends_the_run(inside: Place) -> None:
    run = inside.start("sleep", "60")
    inside.running()
    session = inside.sessions()[0]["id"]
    assert inside.broker.control(f"/v1/sessions/{session}", "DELETE").status == 204
    assert run.wait().status == 4
    assert inside.is_clean()


def test_an_engine_that_is_started_again_leaves_nothing_after_the_next_sweep(
        directory: Path) -> None:
    with engines.running("postern-again") as engine, standin_in(engine) as google, \
            broker_in(engine, directory, google) as broker:
        place = Place(engine, directory, broker)
        place.attach = "inside"
        run = place.start_sh("trap '' TERM; sleep 60")
        place.running()
        engine.restart()
        assert run.wait().status in (4, 125, 137)
        assert place.run("true").status == 0
        eventually("nothing left", place.is_clean)
        place.clear()


class Crowd:
    """Many sandboxes that are there together: each asks when it is up, and again when all are."""

    # The first mint of many may take longer than a request is kept waiting.
    SCRIPT = (f"until {ASK} >/dev/null; do sleep 0.5; done; : >up-PROFILE; "
              f"while [ ! -e go ]; do sleep 0.2; done; {ASK}")

    def __init__(self, place: Place) -> None:
        self.place = place
        self._starting = threading.Semaphore(AT_A_TIME)

    def launch(self, profile: str) -> Launch:
        """One, once it is up."""
        with self._starting:
            run = self.place.start_sh(self.SCRIPT.replace("PROFILE", profile), options=[
                "--profile", profile, "--workspace", self.place.workspace,
                "--network", "none", "--preflight", "none"])
            up = self.place.workspace / f"up-{profile}"
            eventually(f"{profile} is up or has failed",
                       lambda: up.exists() or run.process.poll() is not None, 60.0)
        return run

    def run(self, profiles: Iterable[str]) -> dict[str, Ran]:
        """All, to their ends."""
        with ThreadPoolExecutor(SANDBOXES) as pool:
            runs = dict(zip(profiles, pool.map(self.launch, profiles), strict=True))
            assert len(self.place.sessions()) == len(self.place.doors()) == len(runs)
            (self.place.workspace / "go").touch()
            return dict(zip(runs, pool.map(lambda run: run.wait(180.0), runs.values()),
                            strict=True))


def test_fifty_sandboxes_at_once_never_see_each_other_s_token(engine: Engine,
                                                              directory: Path) -> None:
    accounts = {f"p{i}": f"agent{i}@my-project.iam.gserviceaccount.com" for i in range(SANDBOXES)}
    with standin_in(engine) as google:
        for account in accounts.values():
            google.add_account(account)
            google.grant("operator@example.com", account)
        profiles = {name: {"service_account": account} for name, account in accounts.items()}
        with broker_in(engine, directory, google, profiles=profiles) as broker:
            place = Place(engine, directory, broker)
            place.attach = "inside"
            ran = Crowd(place).run(accounts)
            for name, account in accounts.items():
                info = google.token_info(ran[name].token)
                assert info is not None and info.principal == account
            assert len({each.token for each in ran.values()}) == SANDBOXES
            assert place.is_clean()
            place.clear()
