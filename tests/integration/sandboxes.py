# SPDX-License-Identifier: Apache-2.0
"""Sandboxes of a real engine and a real broker: a door, and an agent that has joined its network."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from . import leaks
from .broker import Broker
from .deadline import allowed
from .door_program import binary
from .doors import Inside
from .engine import IMAGE, Engine, enter
from .sessions import get

# What an engine leaves to a container's root by default.
DOCKER_DEFAULT = ("chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap",
                  "net_bind_service", "net_raw", "sys_chroot", "mknod", "audit_write", "setfcap")
USER = "uid 1000"
ROOT = "root"
DOOR = ["--cap-drop", "ALL", "--cap-add", "NET_ADMIN", "--cap-add", "NET_BIND_SERVICE", "--read-only",
        "--security-opt", "no-new-privileges", "--user", "0:0", "--entrypoint", "/postern-door",
        "--add-host", "metadata.google.internal:169.254.169.254", "--add-host", "metadata:169.254.169.254"]
SYSCTLS = ["--sysctl", "net.ipv4.conf.all.rp_filter=1", "--sysctl", "net.ipv4.conf.all.arp_ignore=1"]
AGENT = ["--cap-drop", "ALL", "--read-only", "--security-opt", "no-new-privileges"]


def attacker(who: str) -> list[str]:
    """What makes a command that of an agent, or of a container's root with the engine's default capabilities.
    There is no filter of system calls, which an engine would add."""
    if who == USER:
        return ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "--bounding-set=-all",
                "--inh-caps=-all", "--no-new-privs"]
    kept = "".join(f",+{name}" for name in DOCKER_DEFAULT)
    return ["setpriv", "--clear-groups", f"--bounding-set=-all{kept}", f"--inh-caps=-all{kept}"]


class NotAttached(Exception):
    """The door has ended, saying this."""


class Container:
    """One that runs until it is removed."""

    def __init__(self, engine: Engine, *arguments: str) -> None:
        self.engine = engine
        self.id = engine.docker("run", "--detach", *arguments).stdout.strip()
        try:
            self.settings = engine.inspect(self.id)
        except BaseException:
            self.remove()
            raise
        self.pid: int = self.settings["State"]["Pid"]

    def remove(self) -> None:
        """Whatever it does."""
        self.engine.remove([self.id])

    def __enter__(self) -> Container:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    @property
    def net(self) -> list[str]:
        """What a command of the tests' own begins with to run in its network."""
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", "--"]

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Sockets that this thread makes meanwhile are of its network."""
        with open("/proc/thread-self/ns/net", "rb") as before:
            enter(Path(f"/proc/{self.pid}/ns/net"))
            try:
                yield
            finally:
                enter(Path(f"/proc/self/fd/{before.fileno()}"))

    def run(self, *command: str, who: str | None = None, check: bool = True,
            **how: Any) -> subprocess.CompletedProcess[str]:
        """A program of this machine, in its network; as root with all capabilities where nobody is named."""
        return subprocess.run([*self.net, *(attacker(who) if who else []), *command], check=check, text=True,
                              capture_output=True, timeout=allowed(60), **how)

    def python(self, program: str, *arguments: str, who: str | None = None) -> Any:
        """A program of this folder, in its network: what it prints as JSON."""
        text = (Path(__file__).parent / program).read_text()
        # By its text: no user but root may be able to read the tree.
        done = self.run("/usr/bin/python3", "-I", "-B", "-", *arguments, who=who, input=text, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    def sh(self, script: str, *options: str) -> subprocess.CompletedProcess[str]:
        """A script for the image's shell, inside the container."""
        return self.engine.docker("exec", *options, self.id, "sh", "-c", script, check=False)

    def network(self) -> dict[str, Any]:
        """Its settings on the one network that it has."""
        found, = self.settings["NetworkSettings"]["Networks"].values()
        return dict(found)


class Sandbox:
    """A session, its door and an agent, which sleeps."""

    def __init__(self, engine: Engine, broker: Broker, *options: str, arguments: Sequence[str] = (),
                 sysctls: bool = True) -> None:
        """Options of the door's container; arguments of postern-door."""
        self.engine, self.broker = engine, broker
        self._options, self._arguments = [*options, *(SYSCTLS if sysctls else [])], arguments
        self._exits = contextlib.ExitStack()

    def __enter__(self) -> Sandbox:
        with contextlib.ExitStack() as exits:
            self.lease = exits.enter_context(Inside(self.broker))
            leaks.note([self.lease.door["ticket"], self.lease.door["secret"]])
            folder = Path(tempfile.mkdtemp(prefix="pd-"))
            exits.callback(shutil.rmtree, folder)
            ticket = folder / "ticket"
            ticket.write_text(self.lease.door["ticket"])
            ticket.chmod(0o644)
            folder.chmod(0o755)
            self.door = exits.enter_context(Container(
                self.engine, *DOOR, *self._options, "--volume", f"{binary()}:/postern-door:ro",
                "--volume", f"{self.lease.door['dir']}:/attach:ro", "--volume", f"{folder}:/door:ro",
                IMAGE, *self._arguments))
            if self.lease.event() != {"event": "attached"}:
                raise NotAttached(self.engine.docker("logs", self.door.id).stderr)
            ticket.unlink()
            self.agent = exits.enter_context(Container(
                self.engine, "--network", f"container:{self.door.id}", "--user", "1000:1000", *AGENT, IMAGE,
                "sleep", "600"))
            self._exits = exits.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def counters(self) -> dict[str, int]:
        """Those of its session."""
        found: dict[str, int] = get(self.broker, self.lease.session).json["counters"]
        return found

    def doors_end(self) -> int:
        """The exit status of its door, once it has ended."""
        return int(self.engine.docker("wait", self.door.id, timeout_s=30).stdout)


@contextlib.contextmanager
def network(engine: Engine, name: str, number: int, *, ipv6: bool = True) -> Iterator[str]:
    """A bridge of its own, 172.29.NUMBER.0/24 and fd00:29:NUMBER::/64; its name."""
    v6 = ["--ipv6", "--subnet", f"fd00:29:{number}::/64"] if ipv6 else []
    engine.docker("network", "create", "--subnet", f"172.29.{number}.0/24", *v6,
                  "--opt", f"com.docker.network.bridge.name={name}", name)
    try:
        yield name
    finally:
        engine.docker("network", "rm", name, check=False)
