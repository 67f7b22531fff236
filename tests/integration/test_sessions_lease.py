# SPDX-License-Identifier: Apache-2.0
"""Leases: a session that ends with the connection that opened it."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import termios
import time

import pytest

from tests.google.standin import Standin

from . import procfs
from .broker import Broker
from .conftest import Starter
from .deadline import FACTOR, eventually
from .sessions import (MINT, SESSIONS, Lease, ask, call, closed_with, delete, get, is_gone, leased,
                       listed, opened, patch, wait_until_gone, whole)

WISH = {"profile": "vertex", "listen": "127.0.0.1", "lease": True}
SEEN_S = 0.1 * FACTOR  # contract: within 100 ms

_HOLD = """
import json, socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
sock.sendall(sys.argv[2].encode())
got = b""
while b"no_proxy" not in got:
    got += sock.recv(65536)
print("held", flush=True)
sys.stdin.read()
"""


def test_the_first_line_is_the_session(offline: Broker) -> None:
    with leased(offline, label="held") as lease:
        assert lease.session["lease"] is True and lease.session["label"] == "held"
        assert get(offline, lease.session).json == lease.session
        assert lease.reply.header("Connection") == "close"
        assert ask(lease.session).token
        assert lease.client.is_silent()
    wait_until_gone(lease.session, 1)


@pytest.mark.parametrize("end", ["close", "half_close", "reset"])
def test_a_lost_client_is_seen_within_100_ms(offline: Broker, end: str) -> None:
    for _ in range(10):
        lease = leased(offline)
        begun = time.monotonic()
        getattr(lease.client, end)()
        wait_until_gone(lease.session, 1)
        assert time.monotonic() - begun < SEEN_S
        assert closed_with(offline, lease.session)["reason"] == "lease"
        lease.client.close()


def test_a_killed_client_is_seen_within_100_ms(offline: Broker) -> None:
    for _ in range(5):
        with subprocess.Popen(
                [sys.executable, "-I", "-c", _HOLD, offline.control_path,
                 whole(SESSIONS, "POST", WISH).decode()],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdout and holder.stdout.readline() == b"held\n"
            session, = listed(offline)
            holder.kill()
            begun = time.monotonic()
            wait_until_gone(session, 1)
            assert time.monotonic() - begun < SEEN_S


@pytest.mark.parametrize("how", ["delete", "expiry"])
def test_the_stream_ends_in_order_with_the_session(offline: Broker, how: str) -> None:
    lease = leased(offline, ttl_s=1 if how == "expiry" else 60)
    if how == "delete":
        assert delete(offline, lease.session).status == 204
    assert lease.is_over()
    lease.client.close()
    assert closed_with(offline, lease.session)["reason"] == \
        ("expired" if how == "expiry" else "deleted")


def test_what_a_client_says_during_its_lease_is_ignored(offline: Broker) -> None:
    lease = leased(offline)
    lease.client.send(whole("/healthz") * 50 + b"\0\xff\r\n" * 1000)
    before = procfs.cpu_s(offline.pid)
    assert ask(lease.session).token
    assert procfs.cpu_s(offline.pid) - before < 0.5
    assert get(offline, lease.session).status == 200
    lease.client.close()
    wait_until_gone(lease.session, 1)


def test_a_lease_costs_no_processor_time(offline: Broker) -> None:
    leases = [leased(offline) for _ in range(20)]
    before = procfs.cpu_s(offline.pid)
    time.sleep(1)  # what is measured is a time of rest
    assert procfs.cpu_s(offline.pid) - before <= 0.03 * FACTOR
    for lease in leases:
        lease.client.close()
    eventually("all gone", lambda: not listed(offline), 1)


def test_http_1_0_gets_a_lease_without_chunks(offline: Broker) -> None:
    with offline.control_client() as client:
        client.send(whole(SESSIONS, "POST", WISH).replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert client.read().header("Transfer-Encoding") is None
        session, = listed(offline)
        assert delete(offline, session).status == 204
        rest = client.rest()
        assert rest.endswith(b"}\n") and session["id"].encode() in rest


POINTS = ["before the first byte", "in the request line", "in the head", "before the body",
          "in the body", "at once", "half closed at once"]


@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize("point", POINTS)
def test_clients_that_vanish_at_every_point_leave_nothing(offline: Broker, point: str,
                                                         end: str) -> None:
    data = whole(SESSIONS, "POST", WISH)
    head = data.index(b"\r\n\r\n") + 4
    length = {"before the first byte": 0, "in the request line": 7, "in the head": head - 9,
              "before the body": head, "in the body": head + 9}.get(point, len(data))
    for _ in range(20):
        client = offline.control_client()
        client.send(data[:length])
        if point == "half closed at once":
            client.half_close()
        getattr(client, end)()
    eventually("none left", lambda: not listed(offline), 2)
    assert offline.control("/healthz").status == 200


def test_every_length_of_a_vanishing_client(offline: Broker) -> None:
    data = whole(SESSIONS, "POST", WISH)
    for length in range(len(data) + 1):
        client = offline.control_client()
        client.send(data[:length])
        client.close()
    eventually("none left", lambda: not listed(offline), 2)


def test_a_lease_that_is_never_read(offline: Broker) -> None:
    """The answer waits in the kernel; the session lives and ends all the same."""
    clients = []
    for _ in range(30):
        client = offline.control_client()
        client.send(whole(SESSIONS, "POST", WISH))
        clients.append(client)
    eventually("30 sessions", lambda: len(listed(offline)) == 30)
    sessions = listed(offline)
    for session in sessions[:10]:
        assert ask(session).token
        assert delete(offline, session).status == 204
    for client in clients:
        client.close()
    eventually("none left", lambda: not listed(offline), 1)


def fill(broker: Broker) -> int:
    """So many answers of /healthz fit into a socket that nobody reads."""
    with broker.control_client() as client:
        reply = call(client, "/healthz")
        client.send(whole("/healthz") * 1000)
        seen = -1
        while seen != (seen := fcntl.ioctl(client.sock, termios.FIONREAD, b"\0" * 4)):
            time.sleep(0.1)  # until no more comes
        return int.from_bytes(seen, sys.byteorder) // len(reply.raw_head + reply.body)


def test_the_end_of_a_lease_that_is_never_read_has_a_deadline(start: Starter) -> None:
    """Where answers before it fill the socket, its stream cannot even begin. The connection of such
    a lease was kept for as long as its client liked."""
    broker = start()
    count = fill(broker)
    before = len(procfs.descriptors(broker.pid))
    clients = []
    for number in range(count - 4, count + 3):
        client = broker.control_client()
        client.send(whole("/healthz") * number + whole(SESSIONS, "POST", WISH))
        clients.append(client)
    eventually("some sessions", lambda: len(listed(broker)) > 2)
    for session in listed(broker):
        assert delete(broker, session).status == 204
    eventually("all cut", lambda: len(procfs.descriptors(broker.pid)) <= before, 8)
    for client in clients:
        client.close()


def test_the_connection_of_a_lost_lease_waits_for_no_older_one(offline: Broker) -> None:
    """libmicrohttpd closed it only when every older connection had ended."""
    with offline.control_client() as older:
        assert call(older, "/healthz").status == 200
        before = len(procfs.descriptors(offline.pid))
        for end in ("close", "half_close", "reset"):
            leases = [leased(offline) for _ in range(20)]
            for lease in leases:
                getattr(lease.client, end)()
            eventually("all closed", lambda: len(procfs.descriptors(offline.pid)) <= before, 1)
            for lease in leases:
                lease.client.close()


def test_many_leases_end_at_once(offline: Broker) -> None:
    """All of one process that is killed, as a harness may be."""
    leases = [leased(offline) for _ in range(200)]
    assert len(listed(offline)) == 200
    for lease in leases:
        lease.client.close()
    begun = time.monotonic()
    eventually("none left", lambda: not listed(offline), 2)
    assert time.monotonic() - begun < 0.5 * FACTOR
    assert all(is_gone(lease.session) for lease in leases)


def test_a_full_house_of_leases_leaves_room_to_ask(start: Starter) -> None:
    """Leases hold connections of the control socket for hours: they must not shut others out."""
    broker = start(broker={"max_sessions": 600, "max_sessions_per_user": 600})
    leases = [leased(broker) for _ in range(600)]
    assert broker.status()["sessions"]["open"] == 600
    assert delete(broker, leases[0].session).status == 204
    assert leases[0].is_over()
    for lease in leases:
        lease.client.close()
    eventually("none left", lambda: not listed(broker), 3)


def test_a_lease_may_be_pinned_and_looked_at(offline: Broker) -> None:
    with leased(offline, pin="launcher") as lease, offline.control_client() as other:
        assert patch(offline, lease.session, "127.0.0.1").status == 200
        assert ask(lease.session).token
        reply = call(other, f"{SESSIONS}/{lease.session['id']}")
        assert reply.json["counters"]["tokens"] == 1 and reply.json["lease"] is True


def test_a_client_that_goes_during_its_preflight_leaves_nothing(start: Starter,
                                                               google: Standin) -> None:
    broker = start(google)
    for end in ("close", "reset"):
        google.hold(MINT)
        client = broker.control_client()
        seen = google.count(MINT)
        client.send(whole(SESSIONS, "POST", {**WISH, "preflight": "mint"}))
        google.wait_for(MINT, seen + 1)
        getattr(client, end)()
        assert broker.control("/healthz").status == 200
        google.release(MINT)
        assert listed(broker) == [] and broker.audit_of("session.open") == []
    assert Lease(broker.control_client(), preflight="mint").session


def test_a_stopped_client_keeps_its_lease(offline: Broker) -> None:
    """SIGSTOP is no death: a launcher under a debugger loses nothing."""
    with subprocess.Popen(
            [sys.executable, "-I", "-c", _HOLD, offline.control_path,
             whole(SESSIONS, "POST", WISH).decode()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout and holder.stdout.readline() == b"held\n"
        session, = listed(offline)
        os.kill(holder.pid, signal.SIGSTOP)
        assert ask(session).token and get(offline, session).status == 200
        holder.kill()
    eventually("gone", lambda: not listed(offline), 1)


def test_unleased_sessions_outlive_their_client(offline: Broker) -> None:
    with offline.control_client() as client:
        session = call(client, SESSIONS, "POST", {**WISH, "lease": False}).json
    assert ask(session).token
    assert opened(offline) and len(listed(offline)) == 2
    for each in listed(offline):
        delete(offline, each)
