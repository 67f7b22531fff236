# SPDX-License-Identifier: Apache-2.0
"""The machine: which processor does what, what it is, and what a process of it costs."""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

_PROCESSORS = sorted(os.sched_getaffinity(0))
# One for what is measured, another for who asks, where there are two.
SERVER = _PROCESSORS[0]
CLIENT = _PROCESSORS[-1]

# What the figures depend on, and how each says its version.
_PROGRAMS: dict[str, Sequence[str]] = {
    "nginx": ["nginx", "-v"],
    "wrk": ["wrk", "-v"],
    "Docker": ["dockerd", "--version"],
    "valgrind": ["valgrind", "--version"],
    "gcc": ["gcc", "--version"],
}
_LIBRARIES = ["libmicrohttpd", "libcurl", "jansson", "libcrypto", "libsystemd"]


def on_server(command: Sequence[str]) -> list[str]:
    """The command, on the processor of what is measured."""
    return ["taskset", "--cpu-list", str(SERVER), *command]


def on_client(command: Sequence[str]) -> list[str]:
    """The command, on the processor of who asks."""
    return ["taskset", "--cpu-list", str(CLIENT), *command]


@contextlib.contextmanager
def staying_on(processor: int) -> Iterator[None]:
    """This thread, and what it starts meanwhile, on one processor: without a program in between that
    would count as start-up."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processor})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cpu_ns(pid: int) -> int:
    """Time on a processor so far, of all threads that it has and had: its CPU clock, whose number
    clock_getcpuclockid(3) makes of the pid in this way."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def _processor() -> str:
    match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    return match[1] if match else platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2 ** 30


def _version(command: Sequence[str]) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=20)
    match = re.search(r"\d+(?:\.\d+)+", done.stdout + done.stderr)
    return match[0] if match else None


def _library(name: str) -> str | None:
    done = subprocess.run(["pkg-config", "--modversion", name], capture_output=True, text=True,
                          check=False)
    return done.stdout.strip() or None


def commit() -> str:
    """What is measured."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True,
                          check=False)
    return done.stdout.strip() or "unknown"


def description() -> list[tuple[str, str]]:
    """Names and values: machine, date and versions."""
    found = [(name, _version(command)) for name, command in _PROGRAMS.items()]
    found += [(name, _library(name)) for name in _LIBRARIES]
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    return [("date", date), ("commit", commit()),
            ("machine", f"{_processor()}, {platform.machine()}, {len(_PROCESSORS)} processors, "
                        f"{_memory_gib():.0f} GiB"),
            ("kernel", f"Linux {platform.release()}"), ("Python", platform.python_version()),
            *((name, version) for name, version in found if version)]
