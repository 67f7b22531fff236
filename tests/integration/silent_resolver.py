# SPDX-License-Identifier: Apache-2.0
"""`python3 -m tests.integration.silent_resolver DIR CREDENTIAL`: a broker whose name server never
answers. Runs in namespaces of its own (network and mounts): there, resolv.conf names a socket on
loopback that nobody reads. Prints what it measured as JSON."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path

from . import procfs
from .broker import Broker
from .http1 import TOKEN, request
from .latency import assert_quick, percentile

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def bring_loopback_up() -> None:
    """`ip link set lo up`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        name = b"lo".ljust(16, b"\0")
        flags, = struct.unpack_from("H", ioctl(sock, SIOCGIFFLAGS, name + bytes(24)), 16)
        ioctl(sock, SIOCSIFFLAGS, name + struct.pack("H", flags | IFF_UP) + bytes(22))


@contextlib.contextmanager
def silent_name_server(directory: Path) -> Iterator[socket.socket]:
    """127.0.0.1:53, and nothing but it to ask."""
    for name, text in (("resolv.conf", "nameserver 127.0.0.1\noptions timeout:30 attempts:5\n"),
                       ("nsswitch.conf", "hosts: dns\n"), ("hosts", "")):
        file = directory / name
        file.write_text(text)
        subprocess.run(["mount", "--bind", file, Path("/etc", name)], check=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 53))
        sock.settimeout(10)
        yield sock


def measure(directory: Path, credential: str) -> dict[str, object]:
    """Latency of `/` while tokens wait for a name, and what became of those."""
    names = {"iamcredentials": "https://iamcredentials.postern.test",
             "oauth2": "https://oauth2.postern.test"}
    with silent_name_server(directory) as server, Broker(
            directory, broker={"endpoint_rate": 0}, endpoints=names,
            source={"type": "file", "file": credential}) as broker:
        statuses: list[int] = []
        samples: list[float] = []
        threads = 0
        # past the time-out of the connection, at which libcurl must not wait for the look-up's end
        while "mint failed: " not in broker.log:
            with broker.client() as client:
                client.send(request(TOKEN))
                if not statuses:
                    assert b"\6oauth2\7postern\4test\0" in server.recv(512)
                while client.is_silent():
                    threads = max(threads, procfs.threads(broker.pid))
                    samples += assert_quick(broker.address(), 100)
                statuses.append(client.read().status)
        samples += assert_quick(broker.address(), 100)
        begun = time.monotonic()
        status = broker.stop()
        return {"statuses": statuses, "count": len(samples), "exit": status,
                "threads": threads, "p50_ms": percentile(samples, 0.5),
                "p99_ms": percentile(samples, 0.99), "max_ms": max(samples),
                "stop_s": time.monotonic() - begun}


def main() -> int:
    """In the namespaces already."""
    os.umask(0o022)
    bring_loopback_up()
    print(json.dumps(measure(Path(sys.argv[1]), sys.argv[2])))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
