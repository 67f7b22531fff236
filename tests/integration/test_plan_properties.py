# SPDX-License-Identifier: Apache-2.0
"""Over hundreds of random runs: no value in an argument vector, and the names that should be and no other
in the environment of the engine's process."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .crossing_model import Case, draw
from .deadline import allowed
from .launch import launcher
from .stub_broker import ENDPOINT, SECRET, SESSION_ID, TICKET, StubBroker
from .stub_engine import Call, StubEngine

# Of each kind; hundreds together, thousands with --long.
RUNS = 1000 if os.environ.get("POSTERN_LONG") == "1" else 100
SEED = 20261129

_FAULT = re.compile(r"Sanitizer|runtime error:")


class Bench:
    """A stub engine, a stub broker and a user of them."""

    def __init__(self, directory: Path, broker: StubBroker, control: Path) -> None:
        self.directory, self.broker, self.control = directory, broker, control
        self._numbers = itertools.count()
        self.engine = self._next_engine()
        for name in ("home", "runtime", "tmp"):
            (directory / name).mkdir(mode=0o700)
        self.token = "kubeconfig-token-canary-0123456789"
        (directory / "kubeconfig.json").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.7:6443"}}],
            "users": [{"name": "u", "user": {"token": self.token}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}))

    def _next_engine(self) -> StubEngine:
        return StubEngine(self.directory / f"engine{next(self._numbers)}")

    def run(self, case: Case, *options: str) -> subprocess.CompletedProcess[bytes]:
        """`postern run` of the case."""
        self.engine = self._next_engine()
        kept = {name: value for name, value in os.environ.items()
                if name.endswith("SAN_OPTIONS") or name == "ASAN_SYMBOLIZER_PATH"}
        environ = kept | {
            "PATH": f"{self.engine.bin}:/usr/bin:/bin", "HOME": str(self.directory / "home"),
            "XDG_RUNTIME_DIR": str(self.directory / "runtime")} | case.environ
        done = subprocess.run(
            [launcher(), "--control", str(self.control), "run", "--owner", "props",
             "--allow-unverified-firewall", *options, *case.options(self.directory),
             "image:1", "agent", "--flag"],
            env=environ, cwd=self.directory, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=allowed(60), check=False)
        assert not _FAULT.search(done.stderr.decode(errors="replace")), done.stderr
        return done

    def secrets(self, case: Case) -> set[bytes]:
        """What may be in no argument vector."""
        return {canary.encode() for canary in case.canaries} | {
            self.token.encode(), TICKET.encode(), SECRET.encode()}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    control = tmp_path / "control.sock"
    with StubBroker(control) as broker:
        yield Bench(tmp_path, broker, control)


def assert_no_value(bench: Bench, case: Case, *texts: bytes) -> None:
    for text in texts:
        for secret in bench.secrets(case):
            assert secret not in text, (secret, case)


def asked_by_name(call: Call) -> list[bytes]:
    """NAME of each `-e NAME`."""
    return [call.argv[i + 1] for i, argument in enumerate(call.argv) if argument == b"-e"]


def assert_named(bench: Bench, case: Case, made: Call) -> None:
    """What is named is what the client has, and nothing is named twice."""
    named = asked_by_name(made)
    assert len(set(named)) == len(named)
    assert not any(b"=" in name for name in named)
    # the client's own variables are the sandbox's only where they were forced across
    own = {name.encode() for name in case.client - case.crossing}
    assert not own & set(named)
    assert {name.encode() for name in case.run_environ} - own <= set(named)
    assert made.env_file is not None
    assert b"HOME=/workspace/home\n" in made.env_file
    assert_no_value(bench, case, made.env_file)


def test_no_value_is_in_an_argument_vector_and_the_names_are_exact(bench: Bench) -> None:
    dice = random.Random(SEED)
    sessions = 0
    for _ in range(RUNS):
        case = draw(dice)
        bench.broker.asked.clear()
        done = bench.run(case)
        assert done.returncode == 0, (done.stderr, case)
        calls = bench.engine.calls()
        made = bench.engine.started()

        assert_no_value(bench, case, done.stdout, done.stderr,
                        *(b"\0".join(call.argv) for call in calls))
        names = {name.decode() for name in made.environ}
        assert names == case.run_environ, (names ^ case.run_environ, case)
        for call in calls:
            if call != made:
                others = {name.decode() for name in call.environ}
                assert others == case.client, (call.argv, others ^ case.client)
        for name in case.crossing - {"NO_PROXY", "no_proxy"}:
            if case.environ[name].strip() or name not in case.preset:
                assert made.environ[name.encode()] == case.environ[name].encode(), name
        assert_named(bench, case, made)

        assert bool(bench.broker.asked) == case.session
        sessions += case.session
        said = done.stderr.decode()
        for name in case.refused:
            assert name in said
    assert 0 < sessions < RUNS


def test_a_dry_run_starts_nothing_and_prints_names_alone(bench: Bench) -> None:
    dice = random.Random(SEED + 2)
    for _ in range(RUNS):
        case = draw(dice)
        done = bench.run(case, "--dry-run", "--json")
        assert done.returncode == 0, (done.stderr, case)
        assert not {"run", "create"} & {call.word for call in bench.engine.calls()}
        assert_no_value(bench, case, done.stdout, done.stderr)

        plan = json.loads(done.stdout)
        crossing = {entry["name"] for entry in plan["variables"] if entry["source"] != "unset"}
        own = case.client - case.crossing
        expected = (case.run_environ - own) | {"HOME"}
        assert crossing == expected, (crossing ^ expected, case)
        assert {entry["name"] for entry in plan["client_variables"]} == case.client
        assert set(plan["refused"]) == case.refused
        assert (plan["session"] is not None) == case.session
    assert not bench.broker.asked


def test_a_dry_run_prints_the_argument_vector_of_the_run(bench: Bench) -> None:
    """But for what is another's each time: the run's id and process, the session."""
    dice = random.Random(SEED + 3)
    varying = re.compile(rb"[0-9a-f]{16}|launcher-(?:pid|start)=\d+|(?<=session=)SESSION|"
                         rb"(?<=container:)DOOR")

    def same(printed: list[str], call: Call) -> bool:
        return [varying.sub(b"", argument.encode()) for argument in printed[1:]] == \
            [varying.sub(b"", argument) for argument in call.argv]
    doors = 0
    for _ in range(12):
        case = draw(dice)
        printed = json.loads(bench.run(case, "--dry-run", "--json").stdout)
        assert bench.run(case).returncode == 0
        assert same(printed["argv"], bench.engine.started())
        if printed["door"] is not None:
            doors += 1
            assert same(printed["door"]["argv"], bench.engine.door())
    assert 0 < doors < 12


def test_env_prints_the_variables_of_a_session_and_its_id(bench: Bench) -> None:
    def env(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([launcher(), "env", "--control", str(bench.control), *options],
                              capture_output=True, text=True, timeout=allowed(30), check=False)

    made = json.loads(env("--format", "json", "--ttl", "10m").stdout)
    assert made["GCE_METADATA_HOST"] == ENDPOINT
    assert made["POSTERN_SESSION"] == SESSION_ID
    assert bench.broker.asked[-1]["pin"] == "first"
    assert bench.broker.asked[-1]["ttl_s"] == 600
    assert not bench.broker.asked[-1].get("lease")
    assert f"GCE_METADATA_HOST={ENDPOINT}\n" in env("--format", "docker").stdout
    shell = subprocess.run(["sh", "-c", env().stdout + 'printf %s "$GCE_METADATA_IP"'],
                           capture_output=True, text=True, check=True)
    assert shell.stdout == ENDPOINT

    opened = len(bench.broker.asked)
    for provider in ("google", "gemini", "anthropic", "openai"):
        for form, text in (("shell", ""), ("docker", ""), ("json", "{}\n")):
            done = env("--provider", provider, "--format", form)
            assert (done.returncode, done.stdout) == (0, text)
    refused = env("--provider", "anthropic-bedrock")
    assert refused.returncode == 3
    assert "no_recipe" in refused.stderr
    assert env("--provider", "nonsense").returncode == 2
    assert len(bench.broker.asked) == opened


def test_a_session_that_could_not_be_printed_is_closed(bench: Bench) -> None:
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([launcher(), "env", "--control", str(bench.control)], stdout=full,
                              stderr=subprocess.PIPE, timeout=allowed(30), check=False)
    assert done.returncode == 1
    assert bench.broker.deleted == [f"/v1/sessions/{SESSION_ID}"]


def test_without_an_engine_the_environment_is_the_same_byte_for_byte(bench: Bench) -> None:
    environ = {b"PATH": b"/usr/bin:/bin", b"ODD": b"\xff\n=", b"GITHUB_TOKEN": b"canary",
               b"HOME": b"/nowhere", b"DOCKER_HOST": b""}
    done = subprocess.run([launcher(), "run", "--engine", "none", "--", "cat",
                           "/proc/self/environ"], env=environ, capture_output=True,
                          timeout=allowed(30), check=False)
    assert dict(item.split(b"=", 1) for item in done.stdout.split(b"\0")[:-1]) == environ
    assert b"no sandbox" in done.stderr
    assert b"canary" not in done.stderr
    assert not bench.broker.asked
