# SPDX-License-Identifier: Apache-2.0
"""What Podman is asked, by a stand-in that writes it down: the launcher's calls, not Podman's answers."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .engine import PATH
from .launch import launcher

CID = "c" * 64
# Answers as Podman's; `run` makes the container that its cidfile says, and is its command.
STUB = """#!/usr/bin/python3
import json, os, sys
here = os.path.dirname(os.path.abspath(sys.argv[0]))
with open(here + "/calls", "a") as calls:
    print(json.dumps({"argv": sys.argv[1:], "env": dict(os.environ)}), file=calls)
with open(here + "/answers") as file:
    answers = json.load(file)
args = sys.argv[1:]
if args[0] == "run":
    path = [a for a in args if a.startswith("--cidfile=")][0].partition("=")[2]
    with open(path, "w") as file:
        file.write("%s")
    raise SystemExit(answers["status"])
print(answers.get(" ".join(args[:2]), answers.get(args[0], "")))
""" % CID


@dataclass
class Podman:
    """The stand-in."""

    folder: Path

    def answers(self, version: str, *, rootless: bool = False, status: int = 0) -> None:
        """Which one it is."""
        (self.folder / "answers").write_text(json.dumps({
            "status": status,
            "info --format": json.dumps({"version": {"Version": version},
                                         "host": {"security": {"rootless": rootless}}}),
            "image inspect": json.dumps([{"Config": {"User": "12:34"}}]),
            "network inspect": json.dumps([{"subnets": [{"gateway": "10.88.0.1"}]}]),
            "container inspect": json.dumps([{"State": {
                "Running": False, "StartedAt": "2026-01-01T00:00:00Z", "ExitCode": status}}]),
        }))

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        """A keyed run: no broker is asked."""
        return subprocess.run(
            [launcher(), "run", "--engine", "podman", "--provider", "gemini", *options, "image:1",
             "true"], text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=60,
            check=False, env={"PATH": f"{self.folder}:{PATH}", "HOME": str(self.folder),
                              "XDG_RUNTIME_DIR": str(self.folder), "SECRET": "s3cr3t-value"})

    def calls(self) -> list[dict[str, Any]]:
        """What it was asked."""
        return [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]

    def run_call(self) -> dict[str, Any]:
        """The one that starts the container."""
        return next(call for call in self.calls() if call["argv"][0] == "run")


@pytest.fixture
def podman(tmp_path: Path) -> Podman:
    """4.9, with root."""
    program = tmp_path / "podman"
    program.write_text(STUB)
    program.chmod(0o755)
    made = Podman(tmp_path)
    made.answers("4.9.3")
    return made


def test_the_host_has_a_word_since_4_7(podman: Podman) -> None:
    assert podman.run().returncode == 0
    assert "--add-host=host.docker.internal:host-gateway" in podman.run_call()["argv"]


def test_before_4_7_it_is_an_address(podman: Podman) -> None:
    podman.answers("4.3.1")
    done = podman.run()
    assert done.returncode == 0, done.stderr
    assert "--add-host=host.docker.internal:10.88.0.1" in podman.run_call()["argv"]


def test_status_and_removal_are_as_with_docker(podman: Podman) -> None:
    podman.answers("4.9.3", status=42)
    assert podman.run().returncode == 42
    name = next(arg for arg in podman.run_call()["argv"] if arg.startswith("--name="))
    assert podman.calls()[-1]["argv"] == ["rm", "--force", "--volumes", name.partition("=")[2]]


def test_a_variable_that_crosses_is_in_the_environment_of_one_call(podman: Podman) -> None:
    assert podman.run("--env", "SECRET").returncode == 0
    for call in podman.calls():
        assert "s3cr3t-value" not in json.dumps(call["argv"])
        assert ("SECRET" in call["env"]) == (call["argv"][0] == "run")
        assert call["env"]["HOME"] == call["env"]["XDG_RUNTIME_DIR"] == str(podman.folder)
        assert not set(call["env"]) & {"DOCKER_CONFIG", "DOCKER_HOST"}


def test_the_right_program_is_run_whatever_the_folder(podman: Podman) -> None:
    os.makedirs(podman.folder / "here")
    (podman.folder / "here" / "podman").write_text("#!/bin/sh\nexit 99\n")
    (podman.folder / "here" / "podman").chmod(0o755)
    done = subprocess.run([launcher(), "run", "--engine", "podman", "--provider", "gemini", "i", "x"],
                          env={"PATH": f".:{podman.folder}", "HOME": "/", "XDG_RUNTIME_DIR":
                               str(podman.folder)}, cwd=podman.folder / "here",
                          capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 0, done.stderr
