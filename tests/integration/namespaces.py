# SPDX-License-Identifier: Apache-2.0
"""Network namespaces of the tests' own: bridges and containers without a way out. Needs root."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator

import pytest

_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000

needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("nsenter"),
    reason="only root may make network namespaces, with iproute2 and util-linux")


def _check(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Namespace:
    """A network namespace with nothing but loopback; gone with its last descriptor and process."""

    def __init__(self) -> None:
        made: list[int] = []

        def make() -> None:
            _check(_libc.unshare(_CLONE_NEWNET))
            made.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))
        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        assert made, "no namespace was made"
        self._fd = made[0]
        self.ip("link set lo up")

    def __enter__(self) -> Namespace:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    @property
    def path(self) -> str:
        """Its file, while this process lives."""
        return f"/proc/{os.getpid()}/fd/{self._fd}"

    def ip(self, *commands: str) -> None:
        """Each by ip(8), inside."""
        for command in commands:
            subprocess.run(["nsenter", f"--net={self.path}", "--", "ip", *command.split()],
                           check=True, capture_output=True, timeout=20)

    @property
    def prefix(self) -> list[str]:
        """Starts a command inside, with the /sys that belongs to it."""
        return ["nsenter", f"--net={self.path}", "--", "unshare", "--mount", "sh", "-c",
                'mount -t sysfs none /sys && exec "$@"', "sh"]

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Sockets that this thread makes meanwhile are of the namespace."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _check(_libc.setns(self._fd, _CLONE_NEWNET))
            try:
                yield
            finally:
                _check(_libc.setns(before, _CLONE_NEWNET))
        finally:
            os.close(before)


class Host(Namespace):
    """One with a bridge as container engines make them: br0, 172.30.0.1/24 and fd00:30::1/64."""

    def __init__(self) -> None:
        super().__init__()
        self._containers: list[Namespace] = []
        self.ip("link add br0 type bridge", "addr add 172.30.0.1/24 dev br0",
                "addr add fd00:30::1/64 dev br0 nodad", "link set br0 up")

    def __exit__(self, *_: object) -> None:
        for container in self._containers:
            container.__exit__()
        super().__exit__()

    def container(self, number: int) -> Namespace:
        """One at the bridge, 172.30.0.NUMBER and fd00:30::NUMBER."""
        inside = Namespace()
        self._containers.append(inside)
        self.ip(f"link add v{number} type veth peer name eth0 netns {inside.path}",
                f"link set v{number} master br0 up")
        inside.ip(f"addr add 172.30.0.{number}/24 dev eth0",
                  f"addr add fd00:30::{number}/64 dev eth0 nodad", "link set eth0 up")
        return inside
