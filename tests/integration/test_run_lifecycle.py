# SPDX-License-Identifier: Apache-2.0
"""A run's container, session and directory end together, whoever dies first."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .deadline import allowed, eventually
from .engine import IMAGE
from .launch import ASK, Launch, Place, launcher

# Of the issue: a killed launcher leaves nothing for longer.
LEFT_S = 2.0
# Asks again and again; every token that comes is a line of `tokens`, written whole.
ASK_ON = f"while :; do {ASK} >one && {{ cat one; echo; }} >>tokens; sleep 0.1; done"


def children(pid: int) -> list[int]:
    """Of a process."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, path.read_text().split())
    return found


def reaper_of(run: Launch) -> int:
    """The process that removes what the launcher cannot."""
    def look() -> int | None:
        for pid in children(run.process.pid):
            if Path(f"/proc/{pid}/comm").read_text() == "postern-reaper\n":
                return pid
        return None
    found = eventually("a reaper", look)
    assert found is not None
    return found


def test_a_killed_launcher_leaves_nothing(place: Place) -> None:
    run = place.start_sh("trap '' TERM; sleep 60", options=["--workspace", place.workspace])
    place.running()
    assert len(place.sessions()) == 1 and place.left()
    run.signal(signal.SIGKILL)
    eventually("nothing left", place.is_clean, LEFT_S)
    assert run.wait().status == -signal.SIGKILL


@pytest.mark.parametrize("after_ms", range(0, 1300, 100))
def test_a_launcher_killed_at_any_moment_leaves_nothing(place: Place, after_ms: int) -> None:
    run = place.start("sleep", "60")
    time.sleep(after_ms / 1000)  # the moment is what is tested
    run.signal(signal.SIGKILL)
    assert run.wait().status == -signal.SIGKILL
    eventually("nothing left", place.is_clean, LEFT_S)


@pytest.mark.parametrize("after_ms", range(0, 1300, 200))
def test_a_launcher_ended_at_any_moment_leaves_nothing(place: Place, after_ms: int) -> None:
    run = place.start("sleep", "60")
    time.sleep(after_ms / 1000)  # the moment is what is tested
    run.signal(signal.SIGTERM)
    assert run.wait().status in (128 + signal.SIGTERM, -signal.SIGTERM)
    eventually("nothing left", place.is_clean, LEFT_S)


def test_the_next_run_sweeps_what_a_crash_of_both_left(place: Place) -> None:
    run = place.start("sleep", "60")
    container = place.running()
    reaper = reaper_of(run)
    os.kill(reaper, signal.SIGKILL)
    run.signal(signal.SIGKILL)
    run.process.wait()
    assert place.containers() == [container] and place.left()
    assert place.run("true", owner=f"{place.owner}x").status == 0
    assert place.containers() == [container]
    ran = place.run("true")
    assert ran.status == 0
    assert f"removed container {container[:12]}" in ran.err
    assert place.is_clean()


def test_a_sweep_leaves_the_runs_of_living_launchers_alone(place: Place) -> None:
    run = place.start("sleep", "60")
    container = place.running()
    assert place.run("true").status == 0
    assert place.containers() == [container]
    run.signal(signal.SIGTERM)
    assert run.wait().status == 143


def test_a_reaper_that_is_gone_takes_nobody_with_it(place: Place) -> None:
    run = place.start_sh("echo >ready; while [ ! -e go ]; do sleep 0.05; done; exit 7",
                         options=["--workspace", place.workspace])
    place.workspace_file("ready")
    os.kill(reaper_of(run), signal.SIGKILL)
    (place.workspace / "go").touch()
    assert run.wait().status == 7
    assert place.is_clean()


def test_a_sweep_in_another_pid_namespace_leaves_them_alone_too(place: Place) -> None:
    """There the first launcher's number is nobody's."""
    run = place.start("sleep", "60")
    container = place.running()
    apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    done = subprocess.run(
        [*place.engine.namespace.prefix, *apart, launcher(), "run", "--owner", place.owner, "--provider", "gemini",
         IMAGE, "true"], env=place.environment(), cwd=place.directory, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=allowed(60), check=False)
    assert done.returncode == 0, done.stderr
    assert place.containers() == [container]
    run.signal(signal.SIGTERM)
    assert run.wait().status == 143


def test_a_signal_reaches_the_command_once(place: Place) -> None:
    run = place.start_sh("trap 'echo got >>signals' USR1; echo >ready; "
                         "trap 'exit 7' TERM; while :; do sleep 0.05; done",
                         options=["--workspace", place.workspace])
    place.workspace_file("ready")
    run.signal(signal.SIGUSR1)
    place.workspace_file("signals")
    run.signal(signal.SIGTERM)
    assert run.wait().status == 7
    assert (place.workspace / "signals").read_text() == "got\n"


def test_a_command_that_ignores_the_timeout_is_killed(place: Place) -> None:
    ran = place.sh("trap '' TERM; sleep 60", options=["--timeout", "1s", "--engine-arg",
                                                      "--stop-timeout=1"])
    assert ran.status == 124
    assert place.is_clean()


def test_a_session_that_is_closed_by_hand_ends_the_run(place: Place) -> None:
    run = place.start("sleep", "60")
    place.running()
    session = place.sessions()[0]["id"]
    assert place.broker.control(f"/v1/sessions/{session}", "DELETE").status == 204
    ran = run.wait()
    assert ran.status == 4
    assert "it has ended the session" in ran.err
    assert place.is_clean()


def test_the_next_token_comes_from_a_broker_that_was_restarted(place: Place) -> None:
    run = place.start_sh(ASK_ON, options=["--workspace", place.workspace])
    first = place.workspace_file("tokens").splitlines()[0]
    before = place.sessions()[0]
    assert place.broker.stop() == 0
    place.broker.start()
    eventually("another token", lambda: place.workspace_file("tokens").splitlines()[-1][:60]
               != first[:60], 20.0)
    after = place.sessions()[0]
    assert after["id"] != before["id"]
    assert (after["listen"], after["peer"]) == (before["listen"], before["peer"])
    run.signal(signal.SIGTERM)
    ran = run.wait()
    assert ran.status == 143
    assert "the broker is back" in ran.err
    assert place.is_clean()


def test_the_same_for_a_broker_that_crashed(place: Place) -> None:
    run = place.start_sh(ASK_ON, options=["--workspace", place.workspace])
    first = place.workspace_file("tokens").splitlines()[0]
    place.broker.kill()
    place.broker.start()
    eventually("another token", lambda: place.workspace_file("tokens").splitlines()[-1][:60]
               != first[:60], 20.0)
    run.signal(signal.SIGTERM)
    assert run.wait().status == 143


def test_standard_input_is_empty_or_passed(place: Place) -> None:
    assert place.run("cat").out == ""
    run = place.start("cat", options=["--interactive"], stdin=-1)
    with contextlib.closing(run.process.stdin) as stdin:  # type: ignore[arg-type,type-var]
        assert stdin is not None
        stdin.write("hello\n")
    run.process.stdin = None
    ran = run.wait()
    assert (ran.status, ran.out) == (0, "hello\n")
