# SPDX-License-Identifier: Apache-2.0
"""Clients that send or read too slowly are cut; all of them at once, since it takes 5 s.

libevent#593, tiny_httpd#5, tiny-nginx#3: slow clients exhaust small servers.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from . import procfs
from .broker import Broker
from .conftest import Starter, new_directory
from .deadline import FACTOR, allowed, eventually
from .http1 import TOKEN, Client, Reply, parse, request
from .latency import assert_quick
from .microhttpd import IS_STRICT
from .test_routes_on_the_wire import assert_common

pytestmark = pytest.mark.real_time

WHOLE = request(TOKEN, headers=[("User-Agent", "slow")])
REQUEST_S = 5.0
LATE_S = 0.8 * FACTOR  # deadlines are kept to a quarter of a second


@dataclass
class End:
    """How a connection ended."""

    after_s: float
    raw: bytes

    @property
    def reply(self) -> Reply:
        found = parse(self.raw)
        assert found, self.raw
        return found[0]


def trickle(client: Client, begun: float, data: bytes = WHOLE) -> End:
    """A byte a second until the peer has had enough."""
    client.sock.settimeout(1.0)
    raw = b""
    for byte in data:
        try:
            client.send(bytes([byte]))
            raw += client.sock.recv(65536)  # waits a second
            break
        except TimeoutError:
            continue
        except OSError:
            break
    client.sock.settimeout(allowed(10))
    return End(time.monotonic() - begun, raw + client.rest())


def until_the_end(client: Client, sent: bytes) -> End:
    begun = time.monotonic()
    client.send(sent)
    raw = client.rest()
    return End(time.monotonic() - begun, raw)


def silent(client: Client) -> End:
    return until_the_end(client, b"")


def half_a_request(client: Client) -> End:
    return until_the_end(client, WHOLE[:len(WHOLE) // 2])


def all_but_the_last_byte(client: Client) -> End:
    return until_the_end(client, WHOLE[:-1])


def tls(client: Client) -> End:
    """A ClientHello has no line end."""
    return until_the_end(client, bytes.fromhex("16030100c8010000c40303") + bytes(range(32, 128)))


def half_closed(client: Client) -> End:
    begun = time.monotonic()
    client.send(WHOLE[:-2])
    client.half_close()
    raw = client.rest()
    return End(time.monotonic() - begun, raw)


def of_control_socket(client: Client) -> End:
    return until_the_end(client, b"GET /healthz HT")


def byte_a_second(client: Client) -> End:
    return trickle(client, time.monotonic())


def second_request(client: Client) -> End:
    assert client.ask("/").status == 200
    return trickle(client, time.monotonic())


def second_request_after_a_rest(client: Client) -> End:
    assert client.ask("/").status == 200
    time.sleep(1.5)  # longer than the broker waits before it looks for a first byte
    return trickle(client, time.monotonic())


def second_request_behind_the_first(client: Client) -> End:
    """Its first bytes come with the first request's last ones."""
    begun = time.monotonic()
    client.send(request("/") + WHOLE[:3])
    assert client.read().status == 200
    return trickle(client, begun, WHOLE[3:])


def never_reads(client: Client) -> End:
    """Pipelines requests until nothing more goes, and reads nothing."""
    begun = time.monotonic()
    client.sock.settimeout(allowed(12))
    try:
        while True:
            client.send(WHOLE * 100)
    except TimeoutError:
        raise AssertionError("never cut") from None
    except OSError:
        return End(time.monotonic() - begun, b"")


SENDERS = [silent, half_a_request, all_but_the_last_byte, byte_a_second, second_request,
           second_request_after_a_rest, second_request_behind_the_first]
Ends = dict[Callable[[Client], End], End]


@pytest.fixture(scope="module")
def slow(artifacts: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Broker, Ends]]:
    """One broker with all of them."""
    functions = [*SENDERS, tls, half_closed, never_reads, of_control_socket]
    with Broker(new_directory(artifacts, request.node.nodeid),
                broker={"endpoint_rate": 0}) as broker:
        def run(function: Callable[[Client], End]) -> End:
            to_control = function is of_control_socket
            with broker.control_client() if to_control else broker.client() as client:
                return function(client)
        with ThreadPoolExecutor(len(functions)) as pool:
            futures: dict[Callable[[Client], End], Future[End]] = {
                function: pool.submit(run, function) for function in functions}
            ends = {function: future.result() for function, future in futures.items()}
        yield broker, ends


@pytest.mark.parametrize("function", SENDERS, ids=lambda function: function.__name__)
def test_who_sends_too_slowly_is_cut_at_5_s(slow: tuple[Broker, Ends],
                                            function: Callable[[Client], End]) -> None:
    """By the whole request, however often a byte comes; on a kept connection likewise."""
    end = slow[1][function]
    assert REQUEST_S - 0.3 <= end.after_s <= REQUEST_S + LATE_S
    assert end.reply.status == 408
    assert_common(end.reply)
    assert end.reply.header("Connection") == "close"


def test_who_speaks_tls_is_cut_by_then(slow: tuple[Broker, Ends]) -> None:
    """A hello is no line: the older libmicrohttpd waits for its end, the newer one ends the connection at once."""
    end = slow[1][tls]
    assert end.after_s <= REQUEST_S + LATE_S
    if IS_STRICT:
        assert end.raw == b""
    else:
        assert REQUEST_S - 0.3 <= end.after_s and end.reply.status == 408


def test_who_half_closes_in_the_middle_gets_no_token(slow: tuple[Broker, Ends]) -> None:
    end = slow[1][half_closed]
    assert b"access_token" not in end.raw and end.after_s <= REQUEST_S + LATE_S


def test_who_never_reads_is_cut(slow: tuple[Broker, Ends]) -> None:
    assert slow[1][never_reads].after_s < 11 * FACTOR


def test_those_who_were_cut_are_audited_and_gone(slow: tuple[Broker, Ends]) -> None:
    broker, _ = slow
    eventually("counts", lambda: sum(
        line["count"] for line in broker.audit_of("request.refuse", reason="slow"))
        >= len(SENDERS))
    eventually("no connection left", lambda: sum(
        what.startswith("socket") for what in procfs.descriptors(broker.pid).values()) <= 5)


@pytest.mark.parametrize("limit", [64, 1200])
def test_half_requests_at_one_endpoint_leave_the_other_quick(start: Starter, limit: int) -> None:
    """300 of them, held and renewed; also where only 64 are let in."""
    broker = start(broker={"endpoint_rate": 0, "endpoint_connections": limit},
                   profiles={"victim": {}, "other": {}})
    stop = threading.Event()
    held: list[Client] = []

    def attack() -> None:
        while not stop.is_set():
            while len(held) < 300:
                held.append(broker.client("victim"))
            for client in held[::10]:
                try:
                    client.send(b"G")
                except OSError:
                    held.remove(client)
                    client.close()
            stop.wait(0.01)
    thread = threading.Thread(target=attack)
    thread.start()
    try:
        eventually("300 of them", lambda: len(held) >= 300)
        assert_quick(broker.address("other"), 400, bound_ms=50)
    finally:
        stop.set()
        thread.join()
        for client in held:
            client.close()
    assert eventually("the victim back", lambda: broker.get("/", "victim").status == 200)


def test_a_slow_client_of_the_control_socket_is_cut(slow: tuple[Broker, Ends]) -> None:
    end = slow[1][of_control_socket]
    assert REQUEST_S - 0.3 <= end.after_s <= REQUEST_S + LATE_S
    assert end.reply.status == 408


def test_a_client_that_reads_slowly_is_not_cut_while_it_reads(start: Starter) -> None:
    broker = start(broker={"endpoint_rate": 0})
    with broker.client() as client:
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.send(WHOLE * 200)
        for _ in range(200):
            assert client.read().token
