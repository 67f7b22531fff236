# SPDX-License-Identifier: Apache-2.0
"""What the kernel tells of a process."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def status(pid: int, field: str) -> str:
    """One line of /proc/PID/status."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return value.strip()
    raise KeyError(field)


def with_variable(name: str, value: str) -> list[int]:
    """The processes that were started with this in their environment."""
    wanted = f"{name}={value}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # ended meanwhile, or not ours to see
            if wanted in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def threads(pid: int) -> int:
    """How many there are."""
    return int(status(pid, "Threads"))


def rss_kib(pid: int) -> int:
    """Resident memory."""
    return int(status(pid, "VmRSS").split()[0])


def anonymous_kib(pid: int) -> int:
    """Of it, what is not of a file: the pages of a program's text come and go."""
    return int(status(pid, "RssAnon").split()[0])


def cpu_s(pid: int) -> float:
    """Processor time used so far, in user and system mode (proc(5): fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descriptors(pid: int) -> dict[int, str]:
    """Open descriptors and what they are."""
    directory = Path(f"/proc/{pid}/fd")
    found = {}
    for path in directory.iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            found[int(path.name)] = os.readlink(path)
    return found


def descriptor_flags(pid: int, fd: int) -> int:
    """The open(2) flags of one."""
    for line in Path(f"/proc/{pid}/fdinfo/{fd}").read_text().splitlines():
        if line.startswith("flags:"):
            return int(line.split()[1], 8)
    raise KeyError(fd)
