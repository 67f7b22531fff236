# SPDX-License-Identifier: Apache-2.0
"""A door that was let in and turns on the broker: it shares the listening sockets and may do to them
whatever a process may do to its own."""

from __future__ import annotations

import contextlib
import signal
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import procfs
from .attaching import sandbox, unharmed  # noqa: F401 - fixtures
from .broker import Broker
from .deadline import FACTOR, allowed, eventually
from .doors import INSIDE, INSIDE6, Door, Inside, Sandbox, attached
from .http1 import request
from .namespaces import needs_namespaces
from .sessions import closed_with, get

pytestmark = [needs_namespaces, pytest.mark.usefixtures("unharmed")]

# valgrind lets no signal into close(2)
LINGER = struct.pack("ii", 1, 3600 if FACTOR == 1 else 1)


def lost(broker: Broker, lease: Inside) -> None:
    """The session is over, and the door is to blame."""
    assert lease.is_over()
    assert closed_with(broker, lease.session)["reason"] == "door_fault"


def answers_soon(broker: Broker) -> None:
    """The loop turns."""
    begun = time.monotonic()
    assert broker.control("/healthz").status == 200
    assert time.monotonic() - begun < 1 * FACTOR


@pytest.mark.parametrize("steals", [False, True])
def test_a_door_that_has_its_socket_block_does_not_stop_the_broker(
        offline: Broker, sandbox: Sandbox, steals: bool) -> None:
    with attached(offline, sandbox) as (lease, door):
        mine = door.sockets[0]
        mine.setblocking(True)  # F_SETFL: it holds for the broker as well
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 0))
        with sandbox.client() as client:
            if steals:
                with contextlib.suppress(OSError):
                    mine.settimeout(allowed(0.5))
                    mine.accept()[0].close()
                mine.setblocking(True)
            answers_soon(offline)
            client.close()
        with contextlib.suppress(OSError):  # where the first was stolen before the broker looked
            sandbox.client().close()
        lost(offline, lease)
        assert door.hear() == "end"


def test_a_door_that_has_its_sockets_linger_does_not_stop_the_broker(
        offline: Broker, sandbox: Sandbox) -> None:
    """An accepted socket inherits SO_LINGER, with which close(2) waits for a client that does not read."""
    with attached(offline, sandbox) as (lease, door):
        door.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
        with sandbox.entered():
            deaf = socket.socket(socket.AF_INET)
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        deaf.connect(INSIDE)
        deaf.sendall(request(host="metadata") * 30)
        eventually("all are answered",
                   lambda: get(offline, lease.session).json["counters"]["requests"] == 30)
        held = len(procfs.descriptors(offline.pid))
        deaf.shutdown(socket.SHUT_WR)  # the broker closes behind the last answer
        eventually("it is closed", lambda: len(procfs.descriptors(offline.pid)) < held)
        for _ in range(20):
            answers_soon(offline)
        deaf.close()


@contextlib.contextmanager
def a_deaf_server(place: Sandbox) -> Iterator[socket.socket]:
    """It takes connections, and next to nothing of what is sent there."""
    with place.listener(("127.0.0.1", 0), device=None) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        made.setblocking(True)
        yield made
        made.setblocking(False)
        with contextlib.suppress(OSError):
            made.accept()[0].close()


def make_linger(sock: socket.socket, deaf: socket.socket) -> None:
    """Connect it, and leave so much unsent that whoever closes it last has an hour to wait."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
    sock.setblocking(True)
    with contextlib.suppress(OSError):
        sock.connect(deaf.getsockname())
        sock.setblocking(False)
        while True:
            sock.send(b"x" * 65536)


@contextlib.contextmanager
def stopped(broker: Broker) -> Iterator[None]:
    """It does not see what happens meanwhile."""
    broker.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        broker.signal(signal.SIGCONT)


def test_a_door_that_leaves_a_lingering_connection_does_not_stop_the_broker(
        offline: Broker, sandbox: Sandbox) -> None:
    """The last copy of its socket is the broker's, and what is closed with it has become a connection."""
    with a_deaf_server(sandbox) as deaf, attached(offline, sandbox) as (lease, door):
        with stopped(offline):
            door.sockets[0].shutdown(socket.SHUT_RDWR)
            make_linger(door.sockets[0], deaf)
            door.close()
        answers_soon(offline)
        assert lease.is_over()


@pytest.mark.parametrize("how, said", [
    ("by a stranger", ""), ("as an offer", "no socket 1: is not bound to 169.254.169.254:80"),
    ("as one too many", "no more than 2 sockets came"), ("behind an offer", "no fewer than 1 sockets came")])
def test_a_lingering_connection_that_is_sent_does_not_stop_the_broker(
        offline: Broker, sandbox: Sandbox, how: str, said: str) -> None:
    with a_deaf_server(sandbox) as deaf, Inside(offline) as lease, Door(lease.door["dir"], sandbox) as door:
        with sandbox.entered():
            sent = [socket.socket(socket.AF_INET) for _ in range(5 if how == "as one too many" else 1)]
        for each in sent:
            make_linger(each, deaf)
        if how != "by a stranger":
            door.is_let_in(lease.door["ticket"])
        with stopped(offline):
            if how == "behind an offer":
                door.say("D")
            door.say("D", sent)
            for each in sent:
                each.close()  # not the last copy: that one is on its way
        answers_soon(offline)
        # Where the broker has not read all, the kernel tells of that before it gives the words.
        assert (door.hear() or door.hear()) == said
        answers_soon(offline)


def test_a_door_that_takes_connections_away_harms_its_own_sandbox_only(
        offline: Broker, sandbox: Sandbox) -> None:
    with Sandbox() as other, attached(offline, sandbox) as (_, door), attached(offline, other):
        taken = 0
        for _ in range(50):
            client = sandbox.client()
            with contextlib.suppress(OSError):
                door.sockets[0].accept()[0].close()
                taken += 1
            client.close()
            answers_soon(offline)
        assert taken
        assert other.ask().token
        assert sandbox.ask().token


@pytest.mark.parametrize("which", [0, 1])
def test_a_door_that_shuts_its_socket_ends_its_session(offline: Broker, sandbox: Sandbox, which: int) -> None:
    with attached(offline, sandbox) as (lease, door):
        door.sockets[which].shutdown(socket.SHUT_RDWR)
        before = procfs.cpu_s(offline.pid)
        lost(offline, lease)
        assert door.hear() == "end"
        assert procfs.cpu_s(offline.pid) - before < 0.5 * FACTOR


def test_a_door_that_makes_a_connection_of_its_socket_serves_nobody(offline: Broker, sandbox: Sandbox) -> None:
    with attached(offline, sandbox) as (lease, door):
        mine = door.sockets[0]
        mine.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            mine.connect(INSIDE)  # to itself, before the broker has looked, or not
        before = procfs.cpu_s(offline.pid)
        for _ in range(20):
            answers_soon(offline)
            assert sandbox.is_refused()
        assert procfs.cpu_s(offline.pid) - before < 0.5 * FACTOR
        with contextlib.suppress(OSError):
            mine.send(request())
        lost(offline, lease)
    assert closed_with(offline, lease.session)["requests"] == 0


def prepare_wire(place: Sandbox) -> None:
    """Two ends of a cable in one namespace: what is sent to v0 comes in at v1, with an address of the
    namespace itself as its source, which is what the loopback interface alone should bring."""
    macs = {"v0": "02:00:00:00:00:01", "v1": "02:00:00:00:00:02"}
    place.ip(f"link add v0 address {macs['v0']} type veth peer name v1 address {macs['v1']}",
             "link set v0 up", "link set v1 up")
    for name, beyond in (("v0", "v1"), ("v1", "v0")):
        place.ip(f"neigh add {INSIDE[0]} lladdr {macs[beyond]} dev {name}",
                 f"neigh add {INSIDE6[0]} lladdr {macs[beyond]} dev {name}",
                 f"route add {INSIDE[0]}/32 dev {name} metric {1 + (name == 'v1')}",
                 f"-6 route add {INSIDE6[0]}/128 dev {name} metric {1 + (name == 'v1')}")
        for key, value in (("accept_local", "1"), ("rp_filter", "0")):
            set_there(place, f"/proc/sys/net/ipv4/conf/{name}/{key}", value)
    set_there(place, "/proc/sys/net/ipv4/conf/all/rp_filter", "0")


def set_there(place: Sandbox, path: str, value: str) -> None:
    """A setting of the namespace."""
    with place.entered():
        Path(path).write_text(value)


@pytest.mark.parametrize("where", [INSIDE, INSIDE6])
def test_a_door_that_opens_its_socket_to_another_device_gains_nothing(
        offline: Broker, where: tuple[str, int]) -> None:
    with Sandbox() as place:
        prepare_wire(place)
        with attached(offline, place) as (lease, door):
            door.sockets[where == INSIDE6].setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"v1")
            with place.entered():
                client = socket.socket(socket.AF_INET6 if where == INSIDE6 else socket.AF_INET)
            client.settimeout(allowed(5))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"v0")
            client.bind((where[0], 0))
            client.connect(where)
            with contextlib.suppress(OSError):
                client.sendall(request(host="metadata"))
                assert client.recv(100) == b""
            client.close()
            line = offline.wait_for_audit("request.refuse", session=lease.session["id"], reason="foreign")
            assert line["peer"] == where[0]
        assert closed_with(offline, lease.session)["requests"] == 0


def test_a_door_that_stops_reading_holds_nothing_up(offline: Broker, sandbox: Sandbox) -> None:
    leases = []
    for _ in range(5):
        lease = Inside(offline)
        leases.append((lease, lease.attach(sandbox)))
        lease.client.close()
        answers_soon(offline)
        eventually("over", lambda lease=lease: offline.audit_of("session.close", session=lease.session["id"]))
    for _, door in leases:
        door.close()
