# SPDX-License-Identifier: Apache-2.0
"""The part of scripts/demo that needs an engine: `postern run` with a real container, from the start of
an engine of its own to the proof that nothing of it is left.

    python3 -m tests.integration.sandbox_demo BUILD_DIRECTORY

Whoever calls it holds the other end of standard input open; its end ends the demo, whatever ended it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from . import engine as engines
from .deadline import eventually
from .engine import IMAGE, PATH, Engine

SCRIPT = Path(__file__).with_name("sandbox_demo.sh")
# Nothing that the operator has may be found by it.
CANARY = "canary-" + secrets.token_hex(8)
# What the sandbox ends its output with, and what its environment has to have and must not have.
ENDED = "the sandbox has seen what it should"
CROSSES = {"GCE_METADATA_HOST", "METADATA_SERVER_DETECTION", "KUBECONFIG", "DEMO_TOPIC",
           "GOOGLE_CLOUD_PROJECT"}
CONFIG = """[broker]
control_socket = {directory}/control.sock
audit_log = {directory}/audit.jsonl

[source]
type = offline

[profile vertex]
service_account = agent@my-project.iam.gserviceaccount.com
project = my-project
"""


class Wrong(Exception):
    """Something is not as it should be."""


def demand(holds: object, what: str) -> None:
    """Wrong, unless it holds."""
    if not holds:
        raise Wrong(what)


def title(text: str) -> None:
    """Of what is shown next."""
    print(f"\n{text}", flush=True)


def end_with_caller() -> None:
    """A signal, or the end of standard input, ends the demo once; what follows is not disturbed."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def stop(number: int, _: object) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)

    def watch() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    for each in numbers:
        signal.signal(each, stop)
    threading.Thread(target=watch, daemon=True).start()


def plant(home: Path) -> dict[str, str]:
    """Variables as operators have them; each value is, or leads to, what must not cross."""
    (home / "adc.json").write_text(json.dumps({"refresh_token": CANARY}))
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(home / "adc.json"), "GITHUB_TOKEN": CANARY,
            "AWS_SECRET_ACCESS_KEY": CANARY, "ANTHROPIC_API_KEY": CANARY, "DB_PASSWORD": CANARY,
            "CLOUDSDK_AUTH_ACCESS_TOKEN": CANARY, "SSH_AUTH_SOCK": f"/{CANARY}/agent.sock",
            "HTTPS_PROXY": f"http://user:{CANARY}@127.0.0.1:9"}


def kubeconfig(home: Path) -> Path:
    """One with an agent's context and the operator's own."""
    def named(key: str, name: str, value: object) -> dict[str, object]:
        return {"name": name, key: value}

    canary = base64.b64encode(CANARY.encode()).decode()
    admin = {"client-certificate-data": canary, "client-key-data": canary}
    path = home / "kubeconfig"
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "admin",
        "clusters": [named("cluster", "bench", {"server": "https://192.0.2.10:6443"})],
        "users": [named("user", "agent", {"token": "not-a-real-token"}),
                  named("user", "admin", admin)],
        "contexts": [named("context", user, {"cluster": "bench", "user": user})
                     for user in ("agent", "admin")]}))
    return path


class Demo:
    """An engine, a broker beside it, and an operator with things that must not cross."""

    def __init__(self, build: Path, engine: Engine, home: Path) -> None:
        self.build, self.engine, self.home = build, engine, home
        self.workspace, self.runtime = home / "workspace", home / "runtime"
        for folder, mode in ((self.workspace, 0o777), (self.runtime, 0o700)):
            folder.mkdir()
            folder.chmod(mode)
        self.planted = plant(home)
        self.kubeconfig = kubeconfig(home)

    @contextlib.contextmanager
    def broker(self) -> Iterator[None]:
        """posternd with the offline source, in the engine's namespace."""
        config = self.home / "postern.conf"
        config.write_text(CONFIG.format(directory=self.home))
        ready, log = self.home / "ready", self.home / "broker.log"
        with open(ready, "wb") as out, open(log, "wb") as err:
            process = subprocess.Popen(
                [*self.engine.namespace.prefix_with_sysfs, str(self.build / "broker" / "posternd"),
                 "--config", str(config)], env={"PATH": PATH, "HOME": str(self.home)},
                stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
        try:
            eventually("the ready line of posternd", lambda: process.poll() is not None
                       or ready.read_text().startswith("ready"), 10.0)
            demand(process.poll() is None, f"posternd did not start: {log.read_text()}")
            yield
            process.terminate()
            demand(process.wait(10) == 0, f"posternd ended with {process.returncode}")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()

    def postern(self, *args: str) -> subprocess.CompletedProcess[str]:
        """`postern ARGS` as the operator calls it, with all that the operator has."""
        return subprocess.run(
            [*self.engine.namespace.prefix, str(self.build / "sandbox" / "postern"), *args],
            env={"PATH": PATH, "HOME": str(self.home), "DOCKER_HOST": self.engine.host,
                 "XDG_RUNTIME_DIR": str(self.runtime), "POSTERN_CONTROL": f"{self.home}/control.sock",
                 "DEMO_TOPIC": "demo", **self.planted},
            cwd=self.home, stdin=subprocess.DEVNULL, text=True, check=False, timeout=60,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def launch(self) -> None:
        """One run; what it prints is what the sandbox sees."""
        options = ["--profile", "vertex", "--agent", "generic", "--kubeconfig", "kubeconfig",
                   "--context", "agent", "--workspace", "workspace", "--env", "DEMO_TOPIC",
                   "--env", "GITHUB_TOKEN", "--timeout", "1m"]
        title("A sandbox: a container of a Docker engine of the demo's own, which has no network but its own")
        print(f"  operator's variables: {', '.join(sorted(self.planted))}")
        print(f"  $ postern run {' '.join(options)} IMAGE sh -c …")
        ran = self.postern("run", *options, IMAGE, "sh", "-c", SCRIPT.read_text())
        print("".join(f"  {line}\n" for line in ran.stdout.splitlines()), end="", flush=True)
        demand(ran.returncode == 0, f"postern run ended with {ran.returncode}")
        demand(ENDED in ran.stdout, "the sandbox did not come to its end")
        self.judge(ran.stdout)

    def judge(self, said: str) -> None:
        """What crossed, by what the sandbox left in its workspace."""
        seen = {path.name: path.read_text(errors="replace") for path in self.workspace.iterdir()
                if path.is_file()}
        names = set(re.findall(r"^([A-Za-z_]\w*)=", seen["environment"], re.M))
        demand(names >= CROSSES, f"missing in the sandbox: {sorted(CROSSES - names)}")
        found = sorted(names & set(self.planted))
        demand(not found, f"variables of the operator crossed: {found}")
        canary = base64.b64encode(CANARY.encode()).decode()
        for name, text in {**seen, "output": said}.items():
            demand(CANARY not in text and canary not in text,
                   f"a value of the operator crossed: see {name}")
        print("  no name and no value of the operator's variables is in it")

    def judge_end(self) -> None:
        """What the run has left: nothing."""
        title("When it has ended")
        demand(not self.engine.containers(), "a container is left")
        sessions = json.loads(subprocess.run(
            ["curl", "--silent", "--fail", "--unix-socket", f"{self.home}/control.sock",
             "http://postern/v1/sessions"], capture_output=True, check=True).stdout)
        demand(sessions == {"sessions": []}, f"a session is left: {sessions}")
        demand(not any((self.runtime / "postern-runs").glob("*")), "a run's directory is left")
        print("  no container, no session, no file of the run is left; the audit trail says:")
        for line in (self.home / "audit.jsonl").read_text().splitlines():
            event = json.loads(line)
            if event["event"] in ("session.open", "token.serve", "session.close"):
                print("   ", *(f"{key}={event[key]}" for key in (
                    "event", "session", "peer", "token", "reason") if event.get(key)))


def processes_of(directory: str) -> list[int]:
    """Those that were started with a path in that directory."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if directory.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def judge_nothing_left(engine: Engine) -> None:
    """Neither a process nor the namespace, a mount or a file."""
    directory = str(engine.directory)
    demand(not engine.namespace.file.exists(), "the network namespace is left")
    # What was killed a moment ago is still seen for that long.
    eventually("the end of every process of the demo", lambda: not processes_of(directory))
    demand(directory not in Path("/proc/self/mounts").read_text(), "a mount is left")
    demand(not engine.directory.exists(), f"{directory} is left")


def run(build: Path) -> None:
    """All of it."""
    used: list[Engine] = []
    try:
        with engines.running("postern-demo") as engine:
            used.append(engine)
            home = engine.directory / "home"
            home.mkdir()
            # The container's user, who is not root, has to come to the workspace.
            engine.directory.chmod(0o711)
            home.chmod(0o711)
            demo = Demo(build, engine, home)
            with demo.broker():
                demo.launch()
                demo.judge_end()
    finally:
        for engine in used:
            judge_nothing_left(engine)


def main() -> int:
    """0: all is as it should be."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    reason = engines.missing()
    if reason is None and not shutil.which("tar", path=PATH):
        reason = "no tar"
    try:
        demand(reason is None, f"no engine can run here: {reason}")
        end_with_caller()
        run(Path(sys.argv[1]).resolve())
    except (Wrong, AssertionError, OSError, subprocess.SubprocessError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
