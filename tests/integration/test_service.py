# SPDX-License-Identifier: Apache-2.0
"""As a service of systemd: what is said on NOTIFY_SOCKET, and what kind of process it is."""

from __future__ import annotations

import os
import re
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.google.standin import Standin

from . import procfs
from .broker import Broker
from .conftest import Starter
from .deadline import FACTOR, allowed, eventually
from .http1 import TOKEN, request

MINT = "generateAccessToken"
# valgrind wants a standard error of its own
CLOSED = ["<&-", "2>&-", "<&- 2>&-"] if FACTOR == 1 else ["<&-"]


@pytest.fixture
def manager(directory: Path) -> Iterator[socket.socket]:
    """A service manager's end of NOTIFY_SOCKET."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(directory / "notify"))
        sock.settimeout(allowed(10))
        yield sock


def message(manager: socket.socket) -> dict[str, str]:
    """The next message's assignments, but for the watchdog's."""
    while True:
        text = manager.recv(4096).decode()
        fields = dict(line.split("=", 1) for line in text.splitlines())
        if "WATCHDOG" not in fields:
            return fields


def test_the_manager_is_told_of_start_reload_and_end(start: Starter,
                                                     manager: socket.socket) -> None:
    broker = start(env={"NOTIFY_SOCKET": manager.getsockname()})
    assert message(manager)["READY"] == "1"
    assert broker.get("/").status == 200
    assert broker.reload()["result"] == "ok"
    fields = message(manager)
    assert fields["RELOADING"] == "1" and fields["MONOTONIC_USEC"].isdigit()  # sd_notify(3)
    assert message(manager)["READY"] == "1"
    broker.write_config("nonsense\n")
    assert broker.reload()["result"] == "refused"
    assert message(manager)["RELOADING"] == "1" and message(manager)["READY"] == "1"
    assert broker.stop() == 0
    assert message(manager)["STOPPING"] == "1"


def test_ready_is_said_once_everything_answers(start: Starter, manager: socket.socket) -> None:
    """google-auth-library-python#1261, java#109: the first request must not find it closed."""
    broker = start(env={"NOTIFY_SOCKET": manager.getsockname()})
    assert message(manager)["READY"] == "1"
    assert broker.get("/").status == 200 and broker.control("/readyz").status == 200


def test_the_watchdog_is_fed(start: Starter, manager: socket.socket) -> None:
    start(env={"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "200000"})
    seen = eventually("a watchdog message", lambda: "WATCHDOG=1" in manager.recv(4096).decode())
    assert seen


# the process


@pytest.mark.real_time
def test_it_is_one_thread(start: Starter, google: Standin) -> None:
    broker = start(google)
    assert procfs.threads(broker.pid) == 1
    google.hold(MINT)
    with broker.client() as client:
        client.send(request(TOKEN))
        google.wait_for(MINT)
        assert procfs.threads(broker.pid) == 1
        google.release(MINT)
        assert client.read().token
    assert procfs.threads(broker.pid) == 1
    print(f"RSS with one profile and one token: {procfs.rss_kib(broker.pid)} KiB")


def test_it_gives_up_what_it_does_not_need(start: Starter, google: Standin) -> None:
    # As a unit with AmbientCapabilities= would start it; a plain user has none to give.
    given = ["setpriv", "--inh-caps=+net_bind_service", "--ambient-caps=+net_bind_service"]
    prefix = given if os.geteuid() == 0 else []
    had = subprocess.run([*prefix, "grep", "^CapAmb", "/proc/self/status"], check=True,
                         stdout=subprocess.PIPE, text=True).stdout.split()[1]
    assert bool(int(had, 16)) == bool(prefix)
    broker = start(google, prefix=prefix)
    assert procfs.status(broker.pid, "Umask") == "0077"
    assert procfs.status(broker.pid, "NoNewPrivs") == "1"
    assert int(procfs.status(broker.pid, "CapAmb"), 16) == 0
    limits = Path(f"/proc/{broker.pid}/limits").read_text()
    assert re.search(r"^Max core file size +0 +0 ", limits, re.M)


def test_the_descriptor_limit_is_raised_to_the_hard_one(broker: Broker) -> None:
    limits = Path(f"/proc/{broker.pid}/limits").read_text()
    match = re.search(r"^Max open files +(\S+) +(\S+) ", limits, re.M)
    assert match and match[1] == match[2]


def test_every_descriptor_closes_on_exec(start: Starter, google: Standin) -> None:
    """Inherited ones too: nothing of the launcher's reaches a child."""
    reader, writer = os.pipe()
    try:
        broker = start(google, pass_fds=[reader, writer])
        assert broker.token().token
        with broker.client() as kept, broker.control_client() as control:
            assert kept.ask("/").status == 200
            assert control.ask("/healthz", host="postern", flavor=False).status == 200
            left = {fd: what for fd, what in procfs.descriptors(broker.pid).items() if fd > 2
                    and not procfs.descriptor_flags(broker.pid, fd) & os.O_CLOEXEC}
        assert left == {}
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize("closed", CLOSED)
def test_standard_descriptors_that_are_closed_are_nobody_elses(directory: Path,
                                                               closed: str) -> None:
    """Else a connection could become what the log is written to."""
    with Broker(directory, prefix=["sh", "-c", f'exec "$@" {closed}', "sh"]) as broker:
        assert broker.token().token
        found = procfs.descriptors(broker.pid)
        assert all(not found.get(fd, "").startswith(("socket", "anon_inode")) for fd in (0, 1, 2))


def test_nothing_it_writes_is_everybodys(broker: Broker) -> None:
    assert broker.token().token
    for name in ("audit.jsonl", "control.sock", "control.sock.lock"):
        assert not stat.S_IMODE((broker.directory / name).stat().st_mode) & stat.S_IRWXO


def test_memory_does_not_grow_with_requests(start: Starter) -> None:
    """kiam#147: growth by the hour. Under a sanitizer, freed memory is held back for a while."""
    broker = start(broker={"endpoint_rate": 0})
    sizes = []
    for _ in range(4):
        with broker.client() as client:
            for _ in range(2000):
                client.ask(TOKEN)
        sizes.append(procfs.rss_kib(broker.pid))
    assert sizes[-1] - sizes[1] < 4096, sizes
