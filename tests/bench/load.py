# SPDX-License-Identifier: Apache-2.0
"""Who asks: wrk where it suffices, else the drivers of this folder."""

from __future__ import annotations

import json
import re
import subprocess
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.http1 import TOKEN, request

from . import machine

Address = tuple[str, int] | str
_UNITS_US = {"us": 1.0, "ms": 1e3, "s": 1e6, "m": 60e6}


class Wrong(Exception):
    """Something was answered wrongly, or not at all: the figures would say nothing."""


@dataclass(frozen=True)
class Load:
    """What wrk saw."""

    rate: float  # answers a second
    answers: int
    p50_us: float
    p99_us: float
    errors: int = 0  # connections refused, broken off or timed out


def parse_wrk(said: str) -> Load:
    """Its report, with --latency."""
    times = {match[1]: float(match[2]) * _UNITS_US[match[3]]
             for match in re.finditer(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s|m)$", said, re.M)}
    rate = re.search(r"^Requests/sec:\s+([\d.]+)$", said, re.M)
    answers = re.search(r"^\s+(\d+) requests in ", said, re.M)
    errors = re.search(r"^\s+Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$",
                       said, re.M)
    if "Non-2xx" in said or not rate or not answers or set(times) != {"50", "99"}:
        raise Wrong(said)
    return Load(float(rate[1]), int(answers[1]), times["50"], times["99"],
                sum(map(int, errors.groups())) if errors else 0)


def wrk(address: tuple[str, int], connections: int, seconds: float, *, close: bool = False) -> Load:
    """Tokens, as fast as they come; with `close` each on a connection of its own."""
    headers = ["-H", "Metadata-Flavor: Google", *(["-H", "Connection: close"] if close else [])]
    done = subprocess.run(
        machine.on_client(["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "--latency",
                           *headers, f"http://{address[0]}:{address[1]}{TOKEN}"]),
        check=True, capture_output=True, text=True)
    return parse_wrk(done.stdout)


@dataclass(frozen=True)
class Driven:
    """What `drive` saw; times in microseconds."""

    answers: int
    seconds: float
    p50_us: float
    p90_us: float
    p99_us: float
    max_us: float
    # of each answer, where they were asked for: when it was asked for (monotonic) and what it took
    trace: tuple[tuple[float, float], ...] = ()


def spell(address: Address) -> str:
    """As the drivers read it."""
    return address if isinstance(address, str) else f"{address[0]}:{address[1]}"


class Drive:
    """A `drive` that runs."""

    def __init__(self, programs: Path, address: Address, *, whole: bytes = request(TOKEN),
                 connections: int = 1, requests: int | None = None, seconds: float = 1.0,
                 close: bool = False, trace: Path | None = None) -> None:
        amount = ["--milliseconds", str(round(seconds * 1000))] if requests is None else \
            ["--requests", str(requests)]
        self._trace = trace
        self._process = subprocess.Popen(
            machine.on_client([str(programs / "drive"), "--connections", str(connections), *amount,
                               *(["--close"] if close else []),
                               *(["--trace", str(trace)] if trace else []), spell(address)]),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        self._process.stdin.write(whole)
        self._process.stdin.close()
        self._process.stdin = None

    def wait(self) -> Driven:
        """Its report; every answer must have been right."""
        said = self._process.communicate()[0]
        if self._process.returncode:
            raise Wrong(f"drive ended with {self._process.returncode}")
        report = json.loads(said)
        if report["failed"] or not report["answers"]:
            raise Wrong(f"{report['failed']} of {report['answers'] + report['failed']} failed")
        return Driven(report["answers"], report["seconds"], report["p50_us"], report["p90_us"],
                      report["p99_us"], report["max_us"], _read_trace(self._trace))


def _read_trace(path: Path | None) -> tuple[tuple[float, float], ...]:
    if path is None:
        return ()
    return tuple((begun / 1e9, took / 1e3) for begun, took in struct.iter_unpack("=qq", path.read_bytes()))


def drive(programs: Path, address: Address, **how: Any) -> Driven:
    """One run of it to its end."""
    return Drive(programs, address, **how).wait()


def churn(programs: Path, control: str, count: int, wish: dict[str, Any]) -> dict[str, float]:
    """So many sessions opened and ended, one after the other; its report."""
    command: Sequence[str] = [str(programs / "churn"), control, str(count), json.dumps(wish)]
    done = subprocess.run(machine.on_client(command), check=True, stdout=subprocess.PIPE)
    report: dict[str, float] = json.loads(done.stdout)
    return report
