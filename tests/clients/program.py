# SPDX-License-Identifier: Apache-2.0
"""A client's program: started with the variables it would have in a sandbox, told what to do."""

from __future__ import annotations

import contextlib
import json
import queue
import shutil
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from . import facts

ROOT = Path(__file__).resolve().parents[2]
ANSWER_S = 60.0  # no library looked at goes on for longer by itself
END_S = 10.0


@dataclass(frozen=True)
class Outcome:
    """What came of one call: the text, or what the user sees instead."""

    text: str = ""
    error: str = ""


def contract_variables(endpoint: str) -> dict[str, str]:
    """The variables of a session (contract section 8), for an endpoint HOST:PORT."""
    host = endpoint.rpartition(":")[0]
    return {
        "GCE_METADATA_HOST": endpoint,
        "GCE_METADATA_IP": endpoint,
        "GCE_METADATA_ROOT": endpoint,
        "METADATA_SERVER_DETECTION": "assume-present",
        "GCE_METADATA_MTLS_MODE": "none",
        "NO_PROXY": host,
        "no_proxy": host,
    }


class Program:
    """One process of a client, as a context manager that demands a clean end."""

    def __init__(self, name: str, directory: Path, variables: Mapping[str, str]) -> None:
        self.facts = facts.of(name)
        home, empty = directory / "home", directory / "empty"
        for each in (home, empty):
            each.mkdir(exist_ok=True)
        places = {"here": facts.HERE / name, "cache": ROOT / "build" / "clients" / name}
        program, *arguments = (word.format(**places) for word in self.facts.command)
        found = shutil.which(program)
        assert found, f"{program} is not installed; run scripts/clients install {name}"
        self._said = directory / f"{name}.stderr"
        # An empty PATH: google-auth-library runs gcloud where it finds one.
        surroundings = {"HOME": str(home), "PATH": str(empty), "LANG": "C.UTF-8"}
        with open(self._said, "a", encoding="utf-8") as said:
            self._process = subprocess.Popen(
                [found, *arguments], cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=said, text=True, env={**surroundings, **self.facts.application, **variables})
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        try:
            with contextlib.suppress(BrokenPipeError):
                self._stdin.close()
            status = self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self._reader.join(END_S)
        if kind is None:
            assert status == 0, f"the client ended with {status}:\n{self.said}"

    @property
    def _stdin(self) -> IO[str]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def said(self) -> str:
        """Its standard error so far."""
        return self._said.read_text(errors="backslashreplace")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def do(self, command: str) -> list[Outcome]:
        """Have it do something; what came of each call."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.write(command + "\n")
            self._stdin.flush()
        try:
            line = self._lines.get(timeout=ANSWER_S)
        except queue.Empty:
            raise AssertionError(f"no answer to {command!r} in {ANSWER_S:g} s") from None
        assert line, f"the client ended during {command!r}:\n{self.said}"
        return [Outcome(**each) for each in json.loads(line)]

    def call(self) -> Outcome:
        """One call of the model."""
        return self.do("call")[0]
