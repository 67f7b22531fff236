# SPDX-License-Identifier: Apache-2.0
"""A Docker engine of the suite's own, in a network namespace of its own that leads nowhere.

Debian's `docker.io`, with its socket, data, state and pid file in one directory. The broker, the stand-in
for Google and every client run in the same namespace, which has loopback and Docker's bridges only.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .deadline import allowed, eventually

# Debian's programs, not what a developer may have beside them.
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
IMAGE = "postern-test:1"
# What the image's own environment would lead an agent to.
BAKED = {"GOOGLE_APPLICATION_CREDENTIALS": "/baked/adc.json", "BAKED_HARMLESS": "yes"}
START_S = 30.0
STOP_S = 30.0
CLONE_NEWNET = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)


def missing() -> str | None:
    """Why no engine can run here, or None."""
    if os.geteuid() != 0:
        return "a dockerd needs root"
    for program in ("dockerd", "docker", "busybox", "ip", "nsenter", "curl"):
        if not shutil.which(program, path=PATH):
            return f"no {program}; see scripts/bootstrap"
    return None


def enter(file: Path) -> None:
    """This thread is in that network namespace from now on."""
    with open(file, "rb") as handle:
        if _libc.setns(handle.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {file}")


class Namespace:
    """A network namespace with loopback up and no way out."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.file = Path("/run/netns", name)
        subprocess.run(["ip", "netns", "add", name], check=True)
        try:
            subprocess.run([*self.prefix, "ip", "link", "set", "lo", "up"], check=True)
        except BaseException:
            self.remove()
            raise

    @property
    def prefix(self) -> list[str]:
        """What a command begins with to run in it; `ip netns exec` would hide the cgroup mounts."""
        return [_NSENTER, f"--net={self.file}"]

    @property
    def prefix_with_sysfs(self) -> list[str]:
        """The same for a command that looks at interfaces in /sys: a mounted one shows those of the
        namespace that it was mounted in."""
        return [*self.prefix, "unshare", "--mount", "sh", "-c",
                'mount -t sysfs sysfs /sys && exec "$0" "$@"']

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Sockets that this thread (and those that it starts) makes meanwhile are in it."""
        enter(self.file)
        try:
            yield
        finally:
            enter(_outside())

    def processes(self) -> list[int]:
        """Those that are in it."""
        inode = os.stat(self.file).st_ino
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.stat(entry / "ns" / "net").st_ino == inode:
                    found.append(int(entry.name))
        return found

    def remove(self) -> None:
        """End what a crash has left in it, and delete it."""
        if not self.file.exists():
            return
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        subprocess.run(["ip", "netns", "delete", self.name], check=False)


# A containerd of the host's own is not this dockerd's, and the sockets of its shims go with it. Nor are the
# host's subordinate ids.
_OWN_CONTAINERD = ["unshare", "--mount", "sh", "-ec", 'mkdir -p /run/containerd; '
                   'mount -t tmpfs tmpfs /run/containerd; for each in subuid subgid; do '
                   'if test -e "$0/$each"; then mount --bind "$0/$each" "/etc/$each"; fi; done; exec "$@"']
# Whose ids a remapped engine's root has, and where they begin.
REMAPPED, REMAPPED_ROOT = "nobody", 300000
_NSENTER = shutil.which("nsenter", path=PATH) or "nsenter"
_OUTSIDE = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _outside() -> Path:
    return Path(f"/proc/self/fd/{_OUTSIDE}")


def _link(name: str, target: str) -> None:
    if not os.path.lexists(name):
        os.symlink(target, name)


def _put_program(root: Path, program: str, folder: str) -> None:
    """A program with the libraries that it is linked to, at the paths that it looks for them."""
    path = shutil.which(program, path=PATH)
    assert path, program
    shutil.copy2(os.path.realpath(path), root / folder / program)
    said = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
    for word in said.split():
        if word.startswith("/"):
            (root / word[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(os.path.realpath(word), root / word[1:])


def make_root(root: Path) -> None:
    """A root file system: busybox with its names, and curl."""
    for folder in ("bin", "usr/bin", "etc", "tmp", "baked", "workspace"):
        (root / folder).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    (root / "bin" / "not-executable").write_text("#!/bin/sh\n")
    (root / "baked" / "adc.json").write_text("{}\n")
    _put_program(root, "busybox", "bin")
    names = subprocess.run([root / "bin" / "busybox", "--list"], capture_output=True, text=True,
                           check=True).stdout.split()
    for name in names:
        _link(str(root / "bin" / name), "busybox")
    _put_program(root, "curl", "usr/bin")


class Engine:
    """The daemon, as a context manager."""

    def __init__(self, directory: Path, name: str = "postern-test", *, remapped: bool = False) -> None:
        """A remapped one gives its containers a user namespace."""
        self.directory, self.remapped = directory, remapped
        self.socket = directory / "docker.sock"
        self.namespace = Namespace(f"{name}-{os.getpid()}")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Engine:
        try:
            self.start()
            self._import_image()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            self.namespace.remove()

    @property
    def host(self) -> str:
        """DOCKER_HOST."""
        return f"unix://{self.socket}"

    @property
    def log(self) -> str:
        """What the daemon said."""
        return (self.directory / "log").read_text(errors="replace")

    def start(self) -> None:
        """Start it and wait until it answers."""
        config = self.directory / "daemon.json"
        config.write_text(json.dumps({"userns-remap": f"{REMAPPED}:nogroup"} if self.remapped else {}))
        if self.remapped:
            self.directory.chmod(0o711)
            for name in ("subuid", "subgid"):
                (self.directory / name).write_text(f"{REMAPPED}:{REMAPPED_ROOT}:65536\n")
        with open(self.directory / "log", "ab") as log:
            self._process = subprocess.Popen(
                [*self.namespace.prefix, *_OWN_CONTAINERD, str(self.directory), "dockerd", "--host", self.host, "--config-file", str(config),
                 "--data-root", str(self.directory / "data"),
                 "--exec-root", str(self.directory / "exec"),
                 "--pidfile", str(self.directory / "pid")],
                env={"PATH": PATH, "HOME": str(self.directory)}, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True)

        def answers() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, self.log[-4000:]
            return self.docker("version", check=False).returncode == 0
        eventually("an answer of dockerd", answers, START_S)

    def stop(self) -> None:
        """Remove every container, end the daemon, unmount what it left."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(subprocess.SubprocessError):
            self.remove(self.containers())
        process.terminate()
        try:
            process.wait(allowed(STOP_S))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            place = line.split()[1]
            if place.startswith(f"{self.directory}/"):
                subprocess.run(["umount", "--lazy", place], check=False)

    def restart(self) -> None:
        """End the daemon, which ends its containers, and start it again."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(allowed(STOP_S))
        self.start()

    def docker(self, *args: str, check: bool = True, timeout_s: float = 30.0,
               **how: Any) -> subprocess.CompletedProcess[str]:
        """One call of the client."""
        return subprocess.run(
            [*self.namespace.prefix, "docker", *args],
            env={"PATH": PATH, "HOME": str(self.directory), "DOCKER_HOST": self.host},
            capture_output=True, text=True, check=check, timeout=allowed(timeout_s),
            stdin=how.pop("stdin", subprocess.DEVNULL), **how)

    def _import_image(self) -> None:
        root = self.directory / "root"
        make_root(root)
        changes = [f"ENV {name}={value}" for name, value in BAKED.items()]
        with subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE) as tar:
            self.docker("import", *[arg for change in changes for arg in ("--change", change)],
                        "-", IMAGE, stdin=tar.stdout)
        shutil.rmtree(root)

    def containers(self, *filters: str) -> list[str]:
        """Ids of all containers, running or not."""
        chosen = [arg for each in filters for arg in ("--filter", each)]
        return self.docker("ps", "--all", "--quiet", "--no-trunc", *chosen).stdout.split()

    def remove(self, ids: Sequence[str]) -> None:
        """Remove containers, whatever they do."""
        if ids:
            # Somebody else may be at it.
            self.docker("rm", "--force", "--volumes", *ids, check=False)

    def inspect(self, container: str) -> dict[str, Any]:
        """All that is known of one."""
        found: list[dict[str, Any]] = json.loads(self.docker("inspect", container).stdout)
        return found[0]

    def gateway(self) -> str:
        """The host's address on the default bridge."""
        said = subprocess.run([*self.namespace.prefix, "ip", "-json", "address", "show", "docker0"],
                              capture_output=True, text=True, check=True).stdout
        return next(str(each["local"]) for each in json.loads(said)[0]["addr_info"]
                    if each["family"] == "inet")


@contextlib.contextmanager
def running(name: str = "postern-test", *, remapped: bool = False) -> Iterator[Engine]:
    """One engine; its directory is short, for sockets have 107 bytes, and is removed."""
    directory = Path(tempfile.mkdtemp(prefix="pe-"))
    try:
        with Engine(directory, name, remapped=remapped) as engine:
            yield engine
    finally:
        shutil.rmtree(directory, ignore_errors=True)
