# SPDX-License-Identifier: Apache-2.0
"""Instructions and system calls of one answer: what a regression shows in, however busy the machine."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.integration import broker as brokers
from tests.integration import configuration

from .. import load
from ..bench import CROWDED, Bench, Scenario
from ..figures import Result

FEW, MANY = 1000, 5000
# Sent by one system call, and no more than one.
MOST_SENDS = 1.0
_SENDS = ("sendmsg", "sendto", "writev", "write", "sendfile")


def _served(bench: Bench, directory: Path, wrapper: Sequence[str], requests: int) -> None:
    """A broker under a wrapper, asked so often and ended; offline, so that it does nothing else."""
    sections = configuration.sections(directory, None, broker=CROWDED)
    (directory / "postern.conf").write_text(configuration.render(sections))
    with open(directory / "stderr", "ab") as log, subprocess.Popen(
            [*wrapper, *brokers.command("--config", directory / "postern.conf")],
            stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, text=True,
            env=brokers.environment(directory)) as process:
        assert process.stdout is not None
        ready = process.stdout.readline().strip()
        try:
            host, _, port = ready.rpartition("=")[2].rpartition(":")
            load.drive(bench.programs, (host, int(port)), requests=requests)
        finally:
            _terminate(process, bool(wrapper) and wrapper[0] == "strace")


def _terminate(process: subprocess.Popen[str], is_parent: bool) -> None:
    """SIGTERM to the broker: the process, or its child."""
    pid = process.pid
    if is_parent:
        pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    subprocess.run(["kill", f"-{signal.SIGTERM.value}", str(pid)], check=True)
    if process.wait(brokers.STOP_S):
        raise load.Wrong(f"posternd ended with {process.returncode}")


def _count_instructions(bench: Bench, requests: int) -> Counter[str]:
    with bench.directory() as directory:
        out = directory / "callgrind"
        _served(bench, directory, ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "-q"],
                requests)
        totals = re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.M)
        assert totals, "callgrind wrote no totals"
        said = subprocess.run(["callgrind_annotate", "--threshold=100", str(out)], check=True,
                              capture_output=True, text=True).stdout
        memset = sum(int(match[1].replace(",", "")) for match in re.finditer(
            r"^\s*([\d,]+) .*:(?:__)?memset\S*", said, re.M))
        return Counter({"all": int(totals[1]), "memset": memset})


def _count_calls(bench: Bench, requests: int) -> Counter[str]:
    with bench.directory() as directory:
        out = directory / "strace"
        _served(bench, directory, ["strace", "-f", "-c", "-o", str(out)], requests)
        found: Counter[str] = Counter()
        for line in out.read_text().splitlines():
            fields = line.split()
            if len(fields) >= 5 and fields[3].isdigit() and fields[-1] != "total":
                found[fields[-1]] = int(fields[3])
        return found


def _per_answer(bench: Bench, count: Callable[[Bench, int], Counter[str]]) -> dict[str, float]:
    """The difference of two runs, so that start and end do not count."""
    few, many = count(bench, FEW), count(bench, MANY)
    return {name: (many[name] - few[name]) / (MANY - FEW) for name in many}


def run(bench: Bench) -> Result:
    """By callgrind and strace, whichever is here."""
    result = Result()
    if shutil.which("valgrind"):
        counted = _per_answer(bench, _count_instructions)
        table = result.table("Instructions of an answer from the cache, by callgrind", "part", "instructions")
        table.add("all", f"{counted['all']:,.0f}")
        table.add("of which memset", f"{counted['memset']:,.0f}")
        table.add("all else", f"{counted['all'] - counted['memset']:,.0f}")
        result.note("memset is libmicrohttpd's: it clears a connection's 8 KiB between two requests, by an "
                    "instruction that callgrind counts once a byte.")
    else:
        result.note("instruction counts: skipped, there is no valgrind")
    if shutil.which("strace"):
        calls = {name: each for name, each in _per_answer(bench, _count_calls).items() if each >= 0.01}
        table = result.table("System calls of an answer from the cache, by strace", "call", "an answer")
        for name, each in sorted(calls.items(), key=lambda item: -item[1]):
            table.add(name, f"{each:.2f}")
        result.check("system calls that send, an answer", sum(calls.get(name, 0) for name in _SENDS),
                     at_most=MOST_SENDS)
    else:
        result.note("system calls: skipped, there is no strace")
    return result


SCENARIO = Scenario(
    "instructions", "Instructions and system calls of an answer",
    f"One kept connection; {MANY:,} requests less {FEW:,}, divided by the difference.", run)
