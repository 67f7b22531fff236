# SPDX-License-Identifier: Apache-2.0
"""`postern run` beside an engine, a broker or an operator that does what they seldom do."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from .deadline import eventually
from .engine import PATH
from .launch import Launch, Ran, launcher
from .stub_broker import StubBroker
from .stub_engine import StubEngine

KEYED = ("--provider", "gemini")  # no broker is asked


class Desk:
    """A launcher between an engine and a broker that only seem to be there."""

    def __init__(self, directory: Path, own: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.home = directory / "home"
        self.runtime = directory / "runtime"
        for folder in (self.home, self.runtime):
            folder.mkdir(mode=0o700)
        self.engine = StubEngine(directory / "engine", own)
        self.control = directory / "control.sock"

    def start(self, *options: str | Path, command: Sequence[str] = ("agent",),
              env: Mapping[str, str] | None = None) -> Launch:
        """`postern run OPTIONS image:1 COMMAND…`."""
        return Launch(subprocess.Popen(
            [launcher(), "run", "--control", str(self.control), *map(str, options), "image:1", *command],
            env={"PATH": f"{self.engine.bin}:{PATH}", "HOME": str(self.home),
                 "XDG_RUNTIME_DIR": str(self.runtime), **(env or {})}, cwd=self.directory, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE),
            self.directory / "runs-said")

    def run(self, *options: str | Path, **how: object) -> Ran:
        """The same to its end."""
        return self.start(*options, **how).wait()  # type: ignore[arg-type]

    def removals(self) -> int:
        """How often the engine was asked to remove a container."""
        return sum(call.word == "rm" for call in self.engine.calls())


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[StubBroker]:
    """At the desk's control socket."""
    with StubBroker(tmp_path / "control.sock") as running:
        yield running


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGWINCH])
def test_a_signal_after_the_client_s_end_reaches_nobody(tmp_path: Path, number: signal.Signals) -> None:
    """The engine does not stop what it runs: its client is killed, and is no more while the rest is put away."""
    desk = Desk(tmp_path, {"run": "exec sleep 60", "stop": "exit 1",
                           "rm": 'touch "$top/removing"; sleep 1'})
    run = desk.start(*KEYED, "--timeout", "1s")
    eventually("the removal", (tmp_path / "engine" / "removing").exists, 10.0)
    run.signal(number)
    ran = run.wait()
    assert ran.status == 124 and "timed out" in ran.err


@pytest.mark.parametrize("first", [True, False], ids=["door", "sandbox"])
def test_a_container_that_may_still_be_made_is_looked_for_after_the_end(tmp_path: Path, broker: StubBroker,
                                                                        first: bool) -> None:
    """The client that makes it is killed; the engine may go on without it."""
    mine = "*role=door*) kill -KILL $$ ;;" if first else "*role=door*) ;; *) kill -KILL $$ ;;"
    desk = Desk(tmp_path, {"create": f"""case "$*" in {mine} esac
		for argument; do
			case $argument in --cidfile=*) printf %064d 1 >"${{argument#*=}}" ;; esac
		done"""})
    ran = desk.run("--profile", "vertex", "--attach", "inside")
    assert ran.status == 125
    before = desk.removals()
    eventually("more removals", lambda: desk.removals() >= before + 4, 10.0)


def test_a_session_without_an_id_is_a_strange_answer(tmp_path: Path, broker: StubBroker) -> None:
    broker.lines = [{"error": {}}]
    ran = Desk(tmp_path).run("--profile", "vertex", "--attach", "gateway", "--allow-unverified-firewall")
    assert ran.status == 4, ran
    assert "what answers there is not a broker" in ran.err


def test_a_plan_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    environment = {"PATH": f"{desk.engine.bin}:{PATH}", "HOME": str(desk.home)}
    for arguments in (["--dry-run", *KEYED, "image:1"], ["--help"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([launcher(), "run", *arguments], env=environment, stdout=full, text=True,
                                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60, check=False)
        assert done.returncode == 1 and "standard output: No space left" in done.stderr


def test_a_command_of_a_megabyte_is_printed(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    command = ["agent", *("x" * 110_000 for _ in range(12))]
    for form in ([], ["--json"]):
        ran = desk.run("--dry-run", *form, *KEYED, command=command)
        assert ran.status == 0 and ran.out.count("x" * 110_000) >= 12


def test_a_token_file_of_a_kubeconfig_is_no_login_of_the_caller(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    login = desk.home / ".git-credentials"
    login.write_text("https://u:a-secret@git.example\n")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(f"""
apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: c, cluster: {{server: "https://10.9.8.7:6443"}}}}]
users: [{{name: u, user: {{tokenFile: {login}}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
""")
    ran = desk.run(*KEYED, "--kubeconfig", kubeconfig)
    assert ran.status == 3 and "tokenFile that lies in cloud or login credentials" in ran.err
    assert "git-credentials" not in ran.err and "a-secret" not in ran.err
    assert not desk.engine.calls()


def test_all_of_the_kubeconfig_stays_outside(tmp_path: Path) -> None:
    """Of the option and of the variable, also where it lies in the workspace."""
    desk = Desk(tmp_path)
    bench = tmp_path / "bench"
    bench.mkdir()
    (bench / "admin.yaml").write_text("""
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://10.9.8.7:6443"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
""")
    for options, env in ((["--kubeconfig", "bench/admin.yaml"], {}), ([], {"KUBECONFIG": "bench/admin.yaml"})):
        for way in (["--workspace", "bench"], ["--mount", "bench/admin.yaml:/x:ro"]):
            ran = desk.run(*KEYED, *options, *way, env=env)
            assert ran.status == 3 and "admin.yaml" in ran.err and "may not cross" in ran.err


@pytest.mark.skipif(os.getuid() != 0, reason="only root is somebody else by sudo")
def test_the_home_of_who_called_sudo_does_not_cross(tmp_path: Path) -> None:
    """User 1 is `daemon` everywhere; its home is a directory that else crosses."""
    desk = Desk(tmp_path)
    assert desk.run("--dry-run", *KEYED, "--mount", "/usr/sbin:/x:ro").status == 0
    ran = desk.run("--dry-run", *KEYED, "--mount", "/usr/sbin:/x:ro", env={"SUDO_UID": "1"})
    assert ran.status == 3 and "home directory" in ran.err


def test_a_command_without_a_sandbox_dumps_core_as_before() -> None:
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    before = 4096 if hard == resource.RLIM_INFINITY or hard >= 4096 else hard
    done = subprocess.run(
        [launcher(), "run", "--engine", "none", "--", "sh", "-c", "ulimit -Sc; ulimit -Hc"], text=True,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True,
        env={"PATH": PATH, "ASAN_OPTIONS": "disable_coredump=0"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (before, hard)))
    soft_blocks, hard_blocks = done.stdout.split()
    assert int(soft_blocks) * 512 == before
    assert hard_blocks == ("unlimited" if hard == resource.RLIM_INFINITY else str(hard // 512))
