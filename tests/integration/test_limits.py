# SPDX-License-Identifier: Apache-2.0
"""Connections, rate, descriptors: contract, section 10."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest

from tests.google.standin import Standin

from . import procfs
from .broker import Broker, NotStarted
from .conftest import Starter
from .deadline import FACTOR, eventually
from .http1 import TOKEN, Broken, Client, request
from .latency import assert_quick
from .test_routes_on_the_wire import assert_common

pytestmark = pytest.mark.real_time


@contextlib.contextmanager
def many(address: tuple[str, int], count: int) -> Iterator[list[Client]]:
    """So many connections that say nothing."""
    clients: list[Client] = []
    try:
        for _ in range(count):
            clients.append(Client(address))
        yield clients
    finally:
        for client in clients:
            client.close()


def test_the_65th_connection_gets_a_503_and_is_closed(start: Starter) -> None:
    broker = start(profiles={"full": {}, "other": {}})
    with many(broker.address("full"), 64) as clients:
        assert clients[63].ask("/").status == 200
        with broker.client("full") as client:
            raw = client.read()
            assert raw.status == 503 and raw.header("Retry-After")
            assert_common(raw)
            assert raw.header("Content-Type") == "text/plain"
            assert client.rest() == b""
        # who was let in is served, and other endpoints are none of it
        assert clients[0].ask("/").status == 200
        assert broker.get("/", "other").status == 200
        assert broker.control("/healthz").status == 200
        clients.pop().close()
        assert eventually("room again", lambda: broker.get("/", "full").status == 200)
    assert broker.wait_for_audit("request.refuse", reason="connections", profile="full")


def test_who_sends_at_once_reads_the_503_too(start: Starter) -> None:
    """The answer must not be lost in a reset."""
    broker = start(broker={"endpoint_connections": 1})
    with broker.client() as first:
        assert first.ask("/").status == 200
        for _ in range(100):
            with broker.client() as client:
                with contextlib.suppress(OSError):
                    client.send(request(TOKEN))
                try:
                    assert client.read().status == 503
                except (Broken, OSError) as err:
                    raise AssertionError(f"the 503 was lost: {err!r}") from None


def test_2048_connections_in_all(start: Starter) -> None:
    broker = start(broker={"endpoint_connections": 2048, "endpoint_rate": 0},
                   profiles={"one": {}, "two": {}})
    with many(broker.address("one"), 1500), many(broker.address("two"), 548) as clients:
        assert clients[-1].ask("/").status == 200
        for profile in ("one", "two"):
            with broker.client(profile) as client:
                assert client.read().status == 503
        assert broker.control("/healthz").status == 200
    assert eventually("room again", lambda: broker.get("/", "one").status == 200)
    print(f"RSS after 2048 connections: {procfs.rss_kib(broker.pid)} KiB")


# the rate


def timed_burst(broker: Broker, count: int) -> float:
    """Seconds that so many pipelined requests take on eight connections."""
    begun = time.monotonic()
    with many(broker.address("hot"), 8) as clients:
        for client in clients:
            client.send(request("/") * (count // 8))
        for client in clients:
            for _ in range(count // 8):
                assert client.read().status == 200
    return time.monotonic() - begun


def test_beyond_its_burst_an_endpoint_answers_200_a_second(start: Starter) -> None:
    """Nothing is refused: the rest waits."""
    broker = start(profiles={"hot": {}})
    assert timed_burst(broker, 392) < 0.9 * FACTOR
    begun = time.monotonic()
    assert timed_burst(broker, 200) > 0.8  # what came back meanwhile is little
    assert time.monotonic() - begun < 1.5 * FACTOR


def test_the_rate_of_one_endpoint_is_not_anothers(start: Starter, google: Standin) -> None:
    broker = start(google, profiles={"hot": {}, "other": {"lifetime": "30m"}})
    with many(broker.address("hot"), 4) as clients:
        for client in clients:
            client.send(request("/") * 300)
        clients[0].read()
        assert_quick(broker.address("other"), 60)
        assert broker.token("other").token


def test_waiting_for_the_rate_is_part_of_the_wait_for_a_token(start: Starter,
                                                             google: Standin) -> None:
    """2.5 s from its arrival, not from when the rate let it through."""
    broker = start(google, broker={"endpoint_rate": 1})
    google.hold("generateAccessToken")
    begun = time.monotonic()
    with many(broker.address(), 5) as clients:
        for client in clients:
            client.send(request(TOKEN))
        assert {client.read().status for client in clients} == {503}
    assert 2.4 < time.monotonic() - begun < 3 + 0.6 * FACTOR  # the fifth goes through after 3 s


def test_without_a_rate_nothing_waits(start: Starter) -> None:
    broker = start(broker={"endpoint_rate": 0}, profiles={"hot": {}})
    assert timed_burst(broker, 2000) < 3 * FACTOR


def test_who_leaves_while_waiting_for_the_rate_is_forgotten(start: Starter) -> None:
    broker = start(broker={"endpoint_rate": 10}, profiles={"hot": {}})
    with many(broker.address(), 40) as clients:
        for client in clients:
            client.send(request("/"))
        clients[0].read()
    assert eventually("an answer", lambda: broker.get("/").status == 200)
    assert broker.stop() == 0


# descriptors


def test_a_broker_without_descriptors_still_answers_and_does_not_spin(start: Starter,
                                                                      google: Standin) -> None:
    limit = 320
    broker = start(google, descriptors=limit,
                   broker={"max_sessions": 1, "endpoint_rate": 0, "endpoint_connections": 2048})
    with broker.client() as kept, broker.control_client() as control:
        assert kept.ask("/").status == 200
        with many(broker.address(), 400):
            eventually("all in use", lambda: len(procfs.descriptors(broker.pid)) >= limit - 2)
            before_s, begun = procfs.cpu_s(broker.pid), time.monotonic()
            for _ in range(20):
                assert kept.ask("/").status == 200
                time.sleep(0.05)  # a second, in which it must be idle
            used_s = procfs.cpu_s(broker.pid) - before_s
            assert used_s < 0.5 * (time.monotonic() - begun), used_s
            control.send(request("/healthz", host="postern", flavor=False))
            assert control.read().status == 200
            # a mint needs a descriptor: it fails, and that is all
            assert kept.ask(TOKEN).status == 503
        assert eventually("room again", lambda: broker.get("/").status == 200)
        broker.until_token()


def test_a_limit_that_sessions_do_not_fit_in_is_refused(start: Starter) -> None:
    with pytest.raises(NotStarted, match="ended with 2") as raised:
        start(descriptors=300, broker={"max_sessions": 1000})
    assert "max_sessions" in str(raised.value)
