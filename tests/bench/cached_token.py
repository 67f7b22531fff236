# SPDX-License-Identifier: Apache-2.0
"""A token from the cache, beside nginx answering a constant of that size.

Both get one processor and wrk the other, in turn (A B A B ...), so that a machine whose speed drifts
moves both. Figures are medians of the rounds; the ratio is taken round by round.
"""

import argparse
import contextlib
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.google.standin import ACCOUNT, PROJECT, Standin

PATH = "/computeMetadata/v1/instance/service-accounts/default/token"
HEADERS = {"Metadata-Flavor": "Google"}
LEAST_RATIO = 0.8
MOST_RESIDENT_KIB = 10 * 1024


def pinned(processor: int, command: list[str]) -> list[str]:
    if len(os.sched_getaffinity(0)) < 2:
        return command
    return ["taskset", "-c", str(sorted(os.sched_getaffinity(0))[processor]), *command]


@contextlib.contextmanager
def running(command: list[str], **files: object) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(pinned(0, command), **files)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=10)


def fetch(port: int) -> bytes:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{PATH}", headers=HEADERS)
    deadline = time.monotonic() + 10
    while True:
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.read()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1])  # type: ignore[index]


def write_broker_config(directory: Path, standin: Standin) -> Path:
    path = directory / "postern.conf"
    path.write_text(
        f"""[broker]
control_socket = {directory}/control.sock
audit_log = {directory}/audit.jsonl
endpoint_rate = 0
endpoint_connections = 512
[source]
type = file
file = {standin.write_adc(directory / "adc.json")}
[endpoints]
iamcredentials = {standin.url}
oauth2 = {standin.url}
ca_file = {standin.ca_file}
[profile vertex]
service_account = {ACCOUNT}
project = {PROJECT}
listen = 127.0.0.1:0
"""
    )
    return path


def write_nginx_config(directory: Path, port: int, body: str) -> Path:
    path = directory / "nginx.conf"
    path.write_text(
        f"""worker_processes 1; daemon off; master_process off; pid {directory}/nginx.pid; error_log {directory}/nginx.log;
events {{ worker_connections 1024; }}
http {{ access_log off; keepalive_requests 1000000000;
  client_body_temp_path {directory}; proxy_temp_path {directory}; fastcgi_temp_path {directory};
  uwsgi_temp_path {directory}; scgi_temp_path {directory};
  server {{ listen 127.0.0.1:{port}; default_type application/json; location / {{ return 200 '{body}'; }} }} }}
"""
    )
    return path


def rate(port: int, connections: int, seconds: float) -> float:
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "-H", "Metadata-Flavor: Google",
               f"http://127.0.0.1:{port}{PATH}"]  # fmt: skip
    out = subprocess.run(pinned(1, command), check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in out or "Socket errors" in out:
        raise SystemExit(f"bench: answers went wrong:\n{out}")
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])  # type: ignore[index]


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):9.0f}  ({min(values):.0f} to {max(values):.0f})"


def compare(ours: int, theirs: int, connections: int, rounds: int, seconds: float) -> bool:
    pairs = [(rate(ours, connections, seconds), rate(theirs, connections, seconds)) for _ in range(rounds)]
    ratios = [a / b for a, b in pairs]
    median = statistics.median(ratios)
    print(f"{connections:3} connections  posternd {spread([a for a, _ in pairs])}")
    print(f"                 nginx    {spread([b for _, b in pairs])}")
    print(f"                 ratio    {median:9.2f}  ({min(ratios):.2f} to {max(ratios):.2f}; at least {LEAST_RATIO})")
    return median >= LEAST_RATIO


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--broker", required=True, help="the posternd to measure")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    arguments = parser.parse_args()
    nginx = subprocess.run(["nginx", "-v"], capture_output=True, text=True).stderr.strip()
    print(f"{platform.machine()}, {os.cpu_count()} processors, Linux {platform.release()}; {nginx}")
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="postern-bench.")))
        standin = stack.enter_context(Standin(directory))
        log = stack.enter_context((directory / "broker.log").open("w"))
        broker = stack.enter_context(
            running([arguments.broker, "--config", str(write_broker_config(directory, standin))],
                    stdout=subprocess.PIPE, stderr=log, text=True)  # fmt: skip
        )
        ready = broker.stdout.readline()
        port = int(ready.rsplit(":", 1)[1])
        at_ready = resident_kib(broker.pid)
        body = fetch(port).decode()
        time.sleep(3)
        after_mint = resident_kib(broker.pid)
        theirs = port + 1 if port < 65535 else port - 1
        stack.enter_context(
            running(["nginx", "-c", str(write_nginx_config(directory, theirs, body))], stderr=subprocess.DEVNULL)
        )
        if len(fetch(theirs)) != len(body):
            raise SystemExit("bench: nginx answers something else")
        good = [compare(port, theirs, n, arguments.rounds, arguments.seconds) for n in (1, 32)]
        after_load = resident_kib(broker.pid)
        print(f"resident KiB     ready {at_ready}, after a mint {after_mint}, after the load {after_load}"
              f" (at most {MOST_RESIDENT_KIB})")  # fmt: skip
        good.append(max(at_ready, after_mint, after_load) <= MOST_RESIDENT_KIB)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
