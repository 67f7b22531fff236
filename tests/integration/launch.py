# SPDX-License-Identifier: Apache-2.0
"""`postern run` as a harness calls it, against an engine and a broker of the suite's own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.google.standin import Standin

from . import engine as engines
from . import leaks
from .broker import ROOT, Broker
from .deadline import allowed, eventually
from .engine import IMAGE, PATH, Engine

# AddressSanitizer, LeakSanitizer, UndefinedBehaviorSanitizer
_FAULT = re.compile(r"Sanitizer|runtime error:")
# What the agent of these tests does first: asks for its token, as every client library does.
ASK = ('wget -q -O - --header "Metadata-Flavor: Google" '
       "http://$GCE_METADATA_HOST/computeMetadata/v1/instance/service-accounts/default/token")


def launcher() -> str:
    """The path of postern in the build tree that is tested."""
    build = os.environ.get("POSTERN_BUILD") or str(ROOT / "build" / "asan")
    return str(Path(build, "sandbox", "postern").absolute())


@dataclass(repr=False)
class Ran:
    """A run that has ended."""

    status: int
    out: str
    err: str

    def __repr__(self) -> str:
        out = "a token" if "access_token" in self.out else repr(self.out[-2000:])
        return f"<Ran {self.status} {out} {self.err[-2000:]!r}>"

    @property
    def token(self) -> str:
        """What `ASK` has printed."""
        assert self.status == 0, self
        return str(json.loads(self.out)["access_token"])


class Launch:
    """A launcher that runs."""

    def __init__(self, process: subprocess.Popen[str], said: Path) -> None:
        self.process, self._said = process, said

    def signal(self, number: signal.Signals) -> None:
        """Send it one."""
        self.process.send_signal(number)

    def _ended(self, timeout_s: float | None = None) -> tuple[str, str]:
        """What it said, which is kept to be searched; but not what an agent prints that asks for its
        token."""
        out, err = self.process.communicate(timeout=timeout_s)
        with self._said.open("a", encoding="utf-8") as file:
            file.write(err if "access_token" in out else out + err)
        return out, err

    def kill(self) -> bool:
        """End it, where it still runs: whether it did."""
        runs = self.process.poll() is None
        if runs:
            self.process.kill()
            self._ended()
        return runs

    def wait(self, timeout_s: float = 60.0) -> Ran:
        """Its end. A negative status is the signal that killed it."""
        try:
            out, err = self._ended(allowed(timeout_s))
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self._ended()
            raise AssertionError(f"postern run did not end: {Ran(0, out, err)}") from None
        assert not _FAULT.search(err), err
        return Ran(self.process.returncode, out, err)


class Place:
    """One engine, one broker (or none), and what one user of them has."""

    def __init__(self, engine: Engine, directory: Path, broker: Broker | None = None) -> None:
        self.engine, self.directory, self._broker = engine, directory, broker
        self.runtime = directory / "runtime"
        self.workspace = directory / "workspace"
        for folder, mode in ((self.runtime, 0o700), (self.workspace, 0o777)):
            folder.mkdir()
            folder.chmod(mode)
        self.owner = "t" + re.sub("[^a-z0-9]", "_", directory.name)
        self.path = PATH
        self.attach = "gateway"
        self._started: list[Launch] = []

    @property
    def broker(self) -> Broker:
        """The one that there is."""
        assert self._broker is not None
        return self._broker

    @property
    def google(self) -> Standin:
        """Behind the broker."""
        assert self.broker.google is not None
        return self.broker.google

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Of the launcher."""
        kept = ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "ASAN_SYMBOLIZER_PATH")
        made = {name: os.environ[name] for name in kept if name in os.environ} | {
            "PATH": self.path, "HOME": str(self.directory), "DOCKER_HOST": self.engine.host,
            "XDG_RUNTIME_DIR": str(self.runtime)}
        if self._broker is not None:
            made["POSTERN_CONTROL"] = self._broker.control_path
        return made | dict(extra or {})

    def start(self, *command: str, options: Sequence[str | Path] = (), image: str = IMAGE,
              env: Mapping[str, str] | None = None, stdin: int = subprocess.DEVNULL,
              owner: str | None = None, verified_firewall: bool = False) -> Launch:
        """`postern run OPTIONS IMAGE COMMAND…`."""
        # Only the gateway way asks for rules of the host.
        allowed_as_is = ("--allow-unverified-firewall",) if self.attach == "gateway" and \
            not verified_firewall else ()
        launch = Launch(subprocess.Popen(
            [*self.engine.namespace.prefix, launcher(), "run", "--owner", owner or self.owner,
             "--attach", self.attach, *allowed_as_is, *map(str, options), image, *command],
            env=self.environment(env), cwd=self.directory, stdin=stdin, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE), self.directory / "runs-said")
        self._started.append(launch)
        return launch

    def run(self, *command: str, timeout_s: float = 60.0, **how: Any) -> Ran:
        """The same to its end."""
        return self.start(*command, **how).wait(timeout_s)

    def sh(self, script: str, **how: Any) -> Ran:
        """The same with a script for the image's shell."""
        return self.run("sh", "-c", script, **how)

    def start_sh(self, script: str, **how: Any) -> Launch:
        """A script that is left running."""
        return self.start("sh", "-c", script, **how)

    def clear(self) -> None:
        """End what a test has left running, and forget what agents wrote: that holds tokens.

        AssertionError, where what has ended has left a container.
        """
        ended = not any([launch.kill() for launch in self._started])
        try:
            if ended:
                eventually("nothing left by runs that have ended", lambda: not self.containers())
        finally:
            self.engine.remove(self.containers())
            shutil.rmtree(self.workspace)

    def running(self) -> str:
        """The id of the one sandbox, once it runs."""
        return eventually("a running container", lambda: [
            each for each in self.engine.containers(
                f"label=postern.owner={self.owner}", "status=running")
            if each not in self.doors()], 15.0)[0]

    def doors(self) -> list[str]:
        """The ids of the doors of this owner, running or not."""
        return self.engine.containers(f"label=postern.owner={self.owner}",
                                      "label=postern.role=door")

    def door(self) -> str:
        """That of the one that is there."""
        [found] = self.doors()
        return found

    def workspace_file(self, name: str, timeout_s: float = 15.0) -> str:
        """What the agent has written to its workspace, once it is there and not empty."""
        path = self.workspace / name
        return eventually(f"{name} in the workspace",
                          lambda: path.read_text() if path.exists() else "", timeout_s)

    def containers(self) -> list[str]:
        """Those of this owner, running or not."""
        return self.engine.containers(f"label=postern.owner={self.owner}")

    def sessions(self) -> list[dict[str, Any]]:
        """Those that are open."""
        found: list[dict[str, Any]] = self.broker.control("/v1/sessions").json["sessions"]
        return found

    def left(self) -> list[str]:
        """Directories of runs that are still there."""
        base = self.runtime / "postern-runs"
        return [path.name for path in base.iterdir()] if base.exists() else []

    def processes(self) -> list[int]:
        """Those that runs have made: reapers and calls of the engine, too."""
        mark = f"XDG_RUNTIME_DIR={self.runtime}".encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found

    def is_clean(self) -> bool:
        """Neither container nor session nor directory is left."""
        return not (self.containers() or self.sessions() or self.left())

    def stays_clean(self, left_s: float) -> None:
        """The same soon, and still when nobody is left who could make something: a run that is killed
        early has nothing yet, and its reaper tries for 20 s."""
        eventually("nothing left", self.is_clean, left_s)
        eventually("no process left", lambda: not self.processes(), 40.0)
        assert self.is_clean()


@contextlib.contextmanager
def standin_in(engine: Engine) -> Iterator[Standin]:
    """A Google that is reached from within the namespace only."""
    google = Standin()
    with engine.namespace.entered():
        google.start()
    try:
        yield google
        leaks.note(google.secrets())
    finally:
        google.stop()


def broker_in(engine: Engine, directory: Path, google: Standin | None, **settings: Any) -> Broker:
    """A broker there, with no endpoint but those of its sessions."""
    profiles = settings.pop("profiles", {"vertex": {}})
    return Broker(directory, google, prefix=engine.namespace.prefix_with_sysfs,
                  profiles={name: {"listen": None, **made} for name, made in profiles.items()},
                  **settings)


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """One for all tests that want it: each has an owner of its own."""
    reason = engines.missing()
    if reason is not None:
        pytest.skip(reason)
    with engines.running() as running:
        yield running


@pytest.fixture
def place(engine: Engine, directory: Path) -> Iterator[Place]:
    """A broker with one profile, beside the engine."""
    with standin_in(engine) as google, broker_in(engine, directory, google) as broker:
        made = Place(engine, directory, broker)
        yield made
        made.clear()


@pytest.fixture
def inside(place: Place) -> Place:
    """The same, with the endpoint in the sandbox."""
    place.attach = "inside"
    return place
