# SPDX-License-Identifier: Apache-2.0
"""An agent: a program that is given a prompt, calls its model and its tools, and ends."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.google.standin import Standin
from tests.integration import procfs
from tests.integration.broker import Broker
from tests.integration.deadline import eventually

from . import facts, presets
from .observed import endpoint
from .program import ROOT, Outcome, contract_variables
from .wire import Wire

TURN_S = 360.0  # the slowest takes ten, and each shares the machine with others
PROMPT = "Say hello."


class Turn:
    """One process of an agent."""

    def __init__(self, command: list[str], directory: Path, variables: Mapping[str, str]) -> None:
        self._out, self._err = directory / "agent.stdout", directory / "agent.stderr"
        self._home = variables["HOME"]
        with open(self._out, "wb") as out, open(self._err, "wb") as err:
            self._process = subprocess.Popen(
                command, cwd=directory / "work", env=dict(variables), stdin=subprocess.DEVNULL,
                stdout=out, stderr=err)

    @property
    def said(self) -> str:
        """On both, so far."""
        return "".join(path.read_text(errors="backslashreplace") for path in (self._out, self._err))

    def wait(self) -> Outcome:
        """Its end: what it answered, or what its user sees instead."""
        try:
            status = self._process.wait(TURN_S)
        except subprocess.TimeoutExpired:
            self.end()
            raise AssertionError(f"no end in {TURN_S:g} s:\n{self.said}") from None
        self.end()
        if status == 0:
            return Outcome(text=self._out.read_text().strip())
        return Outcome(error=self.said)

    def end_when_it_says(self, pattern: str) -> str:
        """End it where it would go on for minutes. What it said until then has the pattern."""
        eventually(f"{pattern!r} or an end of the agent", lambda: self._process.poll() is not None
                   or re.search(pattern, self.said), TURN_S)
        self.end()
        assert re.search(pattern, self.said), self.said
        return self.said

    def end(self) -> None:
        """It, and whatever it has started: some of that is in sessions of its own."""
        self._process.kill()
        self._process.wait()
        while left := procfs.with_variable("HOME", self._home):
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


class Agent:
    """What a sandbox has: one home, nothing of the machine's own. As a context manager."""

    def __init__(self, name: str, directory: Path, google: Standin, wire: Wire) -> None:
        self.facts = facts.of_agent(name)
        self.work = directory / "work"
        self._name, self._directory = name, directory
        self._google, self._wire = google, wire
        for each in ("home", "tmp", "work", "empty"):
            (directory / each).mkdir()
        places = {"here": facts.HERE / name, "cache": ROOT / "build" / "clients" / name,
                  "google": google.http_url}
        program, *arguments = (word.format(**places) for word in self.facts.command)
        found = shutil.which(program)
        assert found, f"{program} is not installed; run scripts/clients install {name}"
        self._command = [found, *arguments, PROMPT]
        self._own = {name: value.format(**places) for name, value in self.facts.application.items()}
        self._turns: list[Turn] = []

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        for turn in self._turns:
            turn.end()
        self._wire.forget()

    def start(self, broker: Broker, variables: Mapping[str, str] | None = None, *,
              preset: bool = True) -> Turn:
        """Begin a turn with the variables of the contract or with others."""
        self._wire.watch(broker.address()[1], self._name)
        surroundings = {"HOME": str(self._directory / "home"), "LANG": "C.UTF-8",
                        "PATH": str(self._directory / "empty"),
                        "TMPDIR": str(self._directory / "tmp")}
        if variables is None:
            variables = contract_variables(endpoint(broker))
        told = presets.variables(self.facts.preset) if preset else {}
        turn = Turn(self._command, self._directory, surroundings | told | self._own | dict(variables))
        self._turns.append(turn)
        return turn

    def turn(self, broker: Broker, variables: Mapping[str, str] | None = None, *,
             preset: bool = True) -> Outcome:
        """A whole turn, and the answers to all that it asked."""
        outcome = self.start(broker, variables, preset=preset).wait()
        eventually("an answer to each call", lambda: all(call.outcome for call in self._google.calls))
        return outcome
