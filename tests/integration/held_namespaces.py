# SPDX-License-Identifier: Apache-2.0
"""Network namespaces without a way out, each held by a process of its own that ends with it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

HOLDER = ["sleep", "600"]


class Namespace:
    """A network namespace with loopback; a further one shares the user namespace of the first."""

    def __init__(self, beside: Namespace | None = None) -> None:
        if beside is not None:
            command = [*beside.enter, "unshare", "--net", *HOLDER]
        elif os.geteuid() == 0:
            command = ["unshare", "--net", *HOLDER]
        else:
            command = ["unshare", "--map-root-user", "--net", *HOLDER]
        self.holder = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        self._wait_for_holder()
        self.run("ip", "link", "set", "lo", "up")

    def _wait_for_holder(self) -> None:
        """What is entered before unshare has made the namespace would be the one of the tests."""
        while Path(f"/proc/{self.holder.pid}/comm").read_text().strip() != HOLDER[0]:
            assert self.holder.poll() is None

    @property
    def pid(self) -> str:
        return str(self.holder.pid)

    @property
    def enter(self) -> list[str]:
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        return ["nsenter", f"--target={self.pid}", "--net", *user]

    def run(self, *command: str | Path, check: bool = True, **options: object) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([*self.enter, *command], capture_output=True, text=True, timeout=60, check=False,
                              stdin=None if "input" in options else subprocess.DEVNULL, **options)
        if check:
            assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done

    def start(self, *command: str | Path) -> subprocess.Popen[str]:
        return subprocess.Popen([*self.enter, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)

    def close(self) -> None:
        self.holder.kill()
        self.holder.wait()
