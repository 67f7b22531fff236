# SPDX-License-Identifier: Apache-2.0
"""Many who ask for the first token share one mint: 50 callers of a client library make 48."""

from __future__ import annotations

import signal
import time

import pytest

from tests.google.script import Step
from tests.google.standin import Standin

from . import procfs
from .broker import Broker
from .conftest import Starter
from .crowd import Crowd
from .deadline import FACTOR
from .http1 import TOKEN, request

pytestmark = pytest.mark.real_time
MINT = "generateAccessToken"
OPEN = {"endpoint_rate": 0, "endpoint_connections": 1200}
MANY = 1000


def tokens_of(crowd: Crowd) -> set[str]:
    return {member.reply.token for member in crowd.members if member.reply is not None}


def faults_of(crowd: Crowd) -> list[str]:
    return [member.fault for member in crowd.members if member.fault is not None]


def test_a_thousand_first_requests_make_one_mint(start: Starter, google: Standin) -> None:
    """identity-metadata-server#17: parallel cache misses.

    google-auth-library-python#1780: N threads refreshed N times.
    """
    broker = start(google, broker=OPEN)
    google.hold(MINT)
    with Crowd(broker.address(), request(TOKEN), MANY) as crowd:
        crowd.run(until_sent=True)
        google.wait_for(MINT)
        google.release(MINT)
        crowd.run()
        assert faults_of(crowd) == [] and len(tokens_of(crowd)) == 1
    assert google.count(MINT) == 1 and google.count("token") == 1
    assert broker.status()["counters"]["tokens"] == MANY
    assert len(broker.audit_of("token.serve")) == 1
    print(f"RSS after {MANY} clients: {procfs.rss_kib(broker.pid)} KiB")


@pytest.mark.parametrize("how", ["close", "reset"])
def test_who_leaves_takes_nothing_from_the_others(start: Starter, google: Standin,
                                                  how: str) -> None:
    """kiam#217: a context that is cancelled. 30 % of the clients go while the mint is under way."""
    broker = start(google, broker=OPEN)
    google.hold(MINT)
    with Crowd(broker.address(), request(TOKEN), MANY) as crowd:
        crowd.run(until_sent=True)
        google.wait_for(MINT)
        gone = crowd.members[::3][:MANY * 3 // 10]
        for member in gone:
            if how == "reset":
                member.sock.setsockopt(1, 13, b"\1\0\0\0\0\0\0\0")  # SO_LINGER, 0 s
            member.leave()
        google.release(MINT)
        crowd.run()
        assert set(faults_of(crowd)) == {"left"} and len(faults_of(crowd)) == len(gone)
        assert len(tokens_of(crowd)) == 1
    assert google.count(MINT) == 1
    assert broker.token().token


def test_who_leaves_first_takes_nothing_from_who_comes_then(broker: Broker,
                                                            google: Standin) -> None:
    google.hold(MINT)
    with broker.client() as client:
        client.send(request(TOKEN))
        google.wait_for(MINT)
        client.reset()
    with broker.client() as client:
        client.send(request(TOKEN))
        google.release(MINT)
        assert client.read().token
    assert google.count(MINT) == 1


def test_all_of_them_leaving_ends_no_mint(broker: Broker, google: Standin) -> None:
    """google-cloud-go#10919: a refresh ended with who had asked first."""
    google.hold(MINT)
    clients = [broker.client() for _ in range(30)]
    for client in clients:
        client.send(request(TOKEN))
    google.wait_for(MINT)
    for client in clients:
        client.reset()
    google.release(MINT)
    broker.wait_for_log("^info: minted: ")
    assert broker.token().token and google.count(MINT) == 1


def test_a_failure_is_shared_too(start: Starter, google: Standin) -> None:
    broker = start(google, broker=OPEN)
    google.hold(MINT)
    google.script(MINT, Step(reason="IAM_PERMISSION_DENIED"))
    with Crowd(broker.address(), request(TOKEN), 300) as crowd:
        crowd.run(until_sent=True)
        google.wait_for(MINT)
        google.release(MINT)
        crowd.run()
        bodies = {member.reply.body for member in crowd.members if member.reply}
        assert faults_of(crowd) == [] and len(bodies) == 1
    assert google.count(MINT) == 1


# the end


def test_sigterm_answers_who_waits_for_a_mint(start: Starter, google: Standin) -> None:
    broker = start(google, broker=OPEN)
    google.hold(MINT)
    with Crowd(broker.address(), request(TOKEN), 64) as crowd:
        crowd.run(until_sent=True)
        google.wait_for(MINT)
        assert broker.get("/").status == 200  # accepted behind them
        broker.signal(signal.SIGTERM)
        broker.wait_for_log("stopping")
        google.release(MINT)
        crowd.run()
        assert faults_of(crowd) == [] and len(tokens_of(crowd)) == 1
        assert {member.reply.status for member in crowd.members if member.reply} == {200}
    assert broker.wait(6) == 0


def test_sigterm_answers_who_waits_in_vain(broker: Broker, google: Standin) -> None:
    """The mint never ends: each is told so, and the broker still ends."""
    google.hold(MINT)
    with Crowd(broker.address(), request(TOKEN), 64) as crowd:
        crowd.run(until_sent=True)
        google.wait_for(MINT)
        begun = time.monotonic()
        broker.signal(signal.SIGTERM)
        crowd.run()
        assert faults_of(crowd) == []
        assert {member.reply.status for member in crowd.members if member.reply} == {503}
    assert broker.wait(6) == 0
    assert time.monotonic() - begun < 5.5 * FACTOR


def test_sigterm_with_nothing_to_do_ends_at_once(broker: Broker) -> None:
    assert broker.get("/").status == 200
    with broker.client() as kept, broker.client() as silent, broker.control_client():
        assert kept.ask("/").status == 200
        silent.send(b"GET / HT")
        begun = time.monotonic()
        assert broker.stop() == 0
        assert time.monotonic() - begun < 2 * FACTOR  # LeakSanitizer takes its part
        assert kept.rest() == b""
    assert broker.audit_of("broker.stop")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_more_changes_nothing(broker: Broker, google: Standin,
                                       number: signal.Signals) -> None:
    google.hold(MINT)
    with broker.client() as client:
        client.send(request(TOKEN))
        google.wait_for(MINT)
        for _ in range(3):
            broker.signal(number)
        broker.signal(signal.SIGHUP)
        broker.wait_for_log("stopping")
        google.release(MINT)
        assert client.read().token
    assert broker.wait() == 0
