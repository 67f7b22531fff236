# SPDX-License-Identifier: Apache-2.0
"""Whom a session serves: pinned by the launcher, by the first that speaks, or not yet."""

from __future__ import annotations

import contextlib
import time

import pytest

from tests.google.standin import Standin

from . import procfs
from .broker import Broker
from .conftest import Starter
from .deadline import FACTOR, eventually
from .http1 import TOKEN, Client, request
from .sessions import (MINT, address, ask, closed_with, delete, error, get, opened, patch, post)

ME, INTRUDER = "127.0.0.2", "127.0.0.66"
FORBIDDEN = (403, "Forbidden.\n")


def connections(broker: Broker) -> int:
    """The broker's open descriptors, which are as many more as there are connections."""
    return len(procfs.descriptors(broker.pid))


# first


def test_the_first_that_speaks_is_pinned(offline: Broker) -> None:
    session = opened(offline)
    assert get(offline, session).json["peer"] is None
    assert ask(session, source=ME).token
    assert get(offline, session).json["peer"] == [ME]
    for target in ("/", TOKEN, "/unknown"):
        reply = ask(session, target, source=INTRUDER)
        assert (reply.status, reply.text) == FORBIDDEN
    assert ask(session, source=ME).token
    assert offline.wait_for_audit("request.refuse", session=session["id"], reason="peer",
                                  peer=INTRUDER)
    delete(offline, session)


@pytest.mark.parametrize("how", [{"flavor": False}, {"host": "evil.example"},
                                 {"headers": [("X-Forwarded-For", "127.0.0.1")]},
                                 {"headers": [("Content-Length", "1")], "body": b"x"}])
def test_who_does_not_speak_the_protocol_is_not_pinned(offline: Broker, how: dict) -> None:
    session = opened(offline)
    assert ask(session, source=INTRUDER, **how).status in (403, 413)
    assert get(offline, session).json["peer"] is None
    assert ask(session, source=ME).token
    delete(offline, session)


def test_who_only_connects_is_not_pinned(offline: Broker) -> None:
    session = opened(offline)
    with Client(address(session), source=INTRUDER) as silent:
        silent.send(b"GET / HTTP/1.1\r\nHost")
        assert ask(session, source=ME).token
        silent.send(b": localhost\r\nMetadata-Flavor: Google\r\n\r\n")
        reply = silent.read()
        assert (reply.status, reply.text) == FORBIDDEN
    delete(offline, session)


def test_a_pinned_peer_may_have_many_connections(offline: Broker) -> None:
    session = opened(offline)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(address(session), source=ME)) for _ in range(20)]
        for client in clients:
            client.send(request(TOKEN))
        assert len({client.read().token for client in clients}) == 1
    delete(offline, session)


def test_patch_before_the_first_word_decides(offline: Broker) -> None:
    session = opened(offline)
    assert patch(offline, session, ME).json["peer"] == [ME]
    assert ask(session, source=INTRUDER).status == 403
    assert ask(session, source=ME).token
    delete(offline, session)


def test_patch_after_the_first_word_is_a_conflict(offline: Broker) -> None:
    session = opened(offline)
    assert ask(session, source=INTRUDER).token
    status, code, _ = error(patch(offline, session, ME))
    assert (status, code) == (409, "conflict")
    assert patch(offline, session, INTRUDER).status == 200
    delete(offline, session)


# launcher


def test_requests_wait_for_the_launchers_pin(offline: Broker) -> None:
    """And do not see an error; who is somebody else does."""
    session = opened(offline, pin="launcher")
    with Client(address(session), source=ME) as agent, \
            Client(address(session), source=INTRUDER) as intruder, \
            Client(address(session), source=ME) as other:
        agent.send(request(TOKEN))
        intruder.send(request(TOKEN))
        other.send(request("/unknown"))
        assert get(offline, session).json["peer"] is None
        assert agent.is_silent() and intruder.is_silent() and other.is_silent()
        assert patch(offline, session, ME, "127.0.0.3").status == 200
        assert agent.read().token
        refused = intruder.read()
        assert (refused.status, refused.text) == FORBIDDEN
        assert other.read().status == 404
        assert agent.ask(TOKEN).token and intruder.ask("/").status == 403
    assert ask(session, source="127.0.0.3").token
    assert get(offline, session).json["counters"] == {"requests": 6, "tokens": 3, "refused": 3}
    assert offline.wait_for_audit("request.refuse", session=session["id"], peer=INTRUDER,
                                  reason="peer")
    delete(offline, session)


def test_an_intruder_that_hammers_never_gets_anything(offline: Broker) -> None:
    """Before, between and after: nobody is pinned by speaking."""
    for _ in range(20):
        session = opened(offline, pin="launcher")
        with contextlib.ExitStack() as stack:
            intruders = [stack.enter_context(Client(address(session), source=INTRUDER))
                         for _ in range(8)]
            for client in intruders[:4]:
                client.send(request(TOKEN))
            agent = stack.enter_context(Client(address(session), source=ME))
            agent.send(request(TOKEN))
            assert patch(offline, session, ME).status == 200
            for client in intruders[4:]:
                client.send(request(TOKEN))
            assert agent.read().token
            assert {client.read().status for client in intruders} == {403}
        delete(offline, session)
        assert closed_with(offline, session)["tokens"] == 1


@pytest.mark.parametrize("pin", ["launcher", "first"])
def test_neighbours_that_keep_connections_open_keep_the_sandbox_out_only_until_the_pin(
        offline: Broker, pin: str) -> None:
    session = opened(offline, pin=pin)
    with contextlib.ExitStack() as stack:
        if pin == "launcher":
            assert patch(offline, session, ME).status == 200
        else:
            assert ask(session, source=ME).token
        silent = [stack.enter_context(Client(address(session), source=f"127.0.1.{number // 100}"))
                  for number in range(200)]
        for client in silent[:64]:
            client.send(b"GET ")
        agents = [stack.enter_context(Client(address(session), source=ME)) for _ in range(64)]
        for agent in agents:
            agent.send(request(TOKEN))
        assert {agent.read().status for agent in agents} == {200}
        # Full of its own, the sandbox has no more room than anybody.
        with Client(address(session), source=ME) as one_more:
            assert one_more.read().status == 503
        assert get(offline, session).status == 200
    delete(offline, session)


def test_neighbours_whose_requests_wait_for_the_rate_do_not_keep_the_sandbox_out(
        start: Starter) -> None:
    """They held every connection with a request under way, none of which made room."""
    broker = start(broker={"endpoint_rate": 50})
    session = opened(broker, pin="launcher", peer=[ME])
    with contextlib.ExitStack() as stack:
        neighbours = [stack.enter_context(Client(address(session), source=INTRUDER))
                      for _ in range(64)]
        for client in neighbours:
            client.send(request("/") * 8)
        eventually("the burst is used up", lambda: get(
            broker, session).json["counters"]["requests"] >= 100)
        agents = [stack.enter_context(Client(address(session), source=ME)) for _ in range(8)]
        for agent in agents:
            agent.send(request(TOKEN))
        assert {agent.read().status for agent in agents} == {200}
    delete(broker, session)


def test_a_neighbour_at_every_endpoint_keeps_nobody_out_of_another(start: Starter) -> None:
    """With 64 connections at each of 32 endpoints it has all that the broker takes."""
    broker = start()
    sessions = [opened(broker, pin="launcher", peer=[ME]) for _ in range(33)]
    with contextlib.ExitStack() as stack:
        for session in sessions[:32]:
            for _ in range(64):
                stack.enter_context(Client(address(session), source=INTRUDER)).send(b"GET ")
        for where in (address(sessions[0]), address(sessions[32])):
            with Client(where, source=INTRUDER) as one_more:
                assert one_more.read().status == 503
        agents = [stack.enter_context(Client(address(session), source=ME))
                  for session in sessions for _ in range(2)]
        for agent in agents:
            agent.send(request(TOKEN))
        assert {agent.read().status for agent in agents} == {200}
        assert broker.get("/").status == 200  # a standing endpoint, where it has no connection


def test_who_is_not_admitted_keeps_nobody_out_of_a_standing_endpoint(start: Starter) -> None:
    broker = start(profiles={"vertex": {"allow_peers": f"{ME}/32"}})
    with contextlib.ExitStack() as stack:
        for _ in range(64):
            stack.enter_context(broker.client(source=INTRUDER)).send(b"GET ")
        agents = [stack.enter_context(broker.client(source=ME)) for _ in range(64)]
        for agent in agents:
            agent.send(request(TOKEN))
        assert {agent.read().status for agent in agents} == {200}
        with broker.client(source=ME) as one_more:
            assert one_more.read().status == 503


def test_without_a_pin_a_request_gets_503_after_two_and_a_half_seconds(offline: Broker) -> None:
    session = opened(offline, pin="launcher")
    begun = time.monotonic()
    with Client(address(session)) as token, Client(address(session)) as root:
        token.send(request(TOKEN))
        root.send(request("/"))
        reply = token.read()
        took = time.monotonic() - begun
        assert reply.status == 503 and reply.header("Retry-After") == "1"
        assert reply.json["error"] == "temporarily_unavailable"
        assert 2.4 < took < 2.5 + 0.6 * FACTOR
        assert root.read().status == 503
        assert patch(offline, session, "127.0.0.1").status == 200
        assert token.ask(TOKEN).token and root.ask("/").status == 200
    delete(offline, session)


def test_requests_that_waited_for_the_pin_are_counted_by_their_route(start: Starter) -> None:
    broker = start(broker={"endpoint_rate": 0})
    session = opened(broker, pin="launcher")
    with Client(address(session)) as client:
        client.send(request("/"))
        assert client.read().status == 503
    text = broker.control("/metrics").text
    assert 'postern_requests_total{profile="vertex",route="directory",code="503"} 1' in text
    assert 'route="token"' not in text


def test_the_wait_for_the_pin_is_part_of_the_wait_for_a_token(start: Starter,
                                                              google: Standin) -> None:
    broker = start(google)
    session = opened(broker, pin="launcher")
    google.hold(MINT)
    begun = time.monotonic()
    with Client(address(session)) as client:
        client.send(request(TOKEN))
        assert get(broker, session).status == 200
        time.sleep(1.0)  # of the 2.5 s
        assert patch(broker, session, "127.0.0.1").status == 200
        assert client.read().status == 503
        assert 2.4 < time.monotonic() - begun < 2.5 + 0.6 * FACTOR
    google.release(MINT)


def test_a_client_that_leaves_before_the_pin_is_forgotten(start: Starter) -> None:
    offline = start()
    before = connections(offline) + 1  # the session's socket
    session = opened(offline, pin="launcher")
    eventually("the control connection closed", lambda: connections(offline) == before)
    clients = [Client(address(session), source=ME) for _ in range(20)]
    for client in clients:
        client.send(request(TOKEN))
    eventually("20 connections", lambda: connections(offline) == before + 20)
    for client in clients:
        client.reset()
    eventually("none", lambda: connections(offline) == before)
    assert patch(offline, session, ME).status == 200
    assert ask(session, source=ME).token
    delete(offline, session)
    assert closed_with(offline, session)["tokens"] == 1


def test_a_client_that_half_closes_before_the_pin_gets_its_answer(offline: Broker) -> None:
    session = opened(offline, pin="launcher")
    with Client(address(session)) as client:
        client.send(request(TOKEN))
        client.half_close()
        assert get(offline, session).status == 200
        assert patch(offline, session, "127.0.0.1").status == 200
        assert client.read().token
    delete(offline, session)


def test_a_half_closed_client_gets_its_answer_beside_an_older_connection(
        start: Starter, google: Standin) -> None:
    """libmicrohttpd read on before it looked at the answer, but from the oldest connection."""
    broker = start(google)
    session = opened(broker)
    with broker.client() as older, Client(address(session)) as other:
        assert older.ask("/").status == 200 and other.ask("/").status == 200
        google.hold(MINT)
        for where in (broker.address(), address(session)):
            seen = google.count(MINT)
            with Client(where) as client:
                client.send(request(TOKEN))
                client.half_close()
                google.wait_for(MINT, seen + 1)
                google.release(MINT, 1)
                assert client.read().token
                assert client.rest() == b""
        google.release(MINT)


def test_what_is_no_request_is_answered_before_the_pin(offline: Broker) -> None:
    session = opened(offline, pin="launcher")
    reply = ask(session, headers=[("Content-Length", "5")], body=b"hello")
    assert reply.status == 413
    with Client(address(session)) as client:
        client.send(b"GET / HTTP/1.1\nHost: localhost\n\n")
        assert client.read().status >= 400
    delete(offline, session)


# by POST and PATCH


def test_a_peer_of_the_wish_is_pinned_from_the_start(offline: Broker) -> None:
    for pin in ("first", "launcher"):
        session = opened(offline, pin=pin, peer=[ME, "::1"])
        assert (session["pin"], session["peer"]) == (pin, [ME, "::1"])
        assert ask(session, source=INTRUDER).status == 403
        assert ask(session, source=ME).token
        delete(offline, session)


def test_the_same_list_again_in_any_order(offline: Broker) -> None:
    session = opened(offline, pin="launcher")
    for peers in (["127.0.0.2", "127.0.0.3"], ["127.0.0.3", "127.0.0.2"],
                  ["127.0.0.2", "127.0.0.3", "127.0.0.2"], ["::ffff:127.0.0.2", "127.0.0.3"]):
        reply = patch(offline, session, *peers)
        assert reply.status == 200 and reply.json["peer"] == ["127.0.0.2", "127.0.0.3"]
    for peers in (["127.0.0.2"], ["127.0.0.2", "127.0.0.4"], ["127.0.0.2", "127.0.0.2"],
                  ["127.0.0.2", "127.0.0.3", "127.0.0.4"]):
        assert error(patch(offline, session, *peers)) == (
            409, "conflict", "the session is pinned to other addresses")
    delete(offline, session)


@pytest.mark.parametrize("peers", [["0.0.0.0"], ["::"], ["224.0.0.1"], ["ff02::1"],
                                   ["255.255.255.255"], ["127.0.0.1", "239.1.2.3"]])
def test_only_hosts_are_pinned(offline: Broker, peers: list[str]) -> None:
    session = opened(offline, pin="launcher")
    assert error(patch(offline, session, *peers)) == (
        400, "bad_request", "peer: an address is the host's own, or not one host's")
    assert get(offline, session).json["peer"] is None
    delete(offline, session)


@pytest.mark.parametrize(("body", "message"), [
    ({}, '"peer": is required'), ({"peer": None}, '"peer": is required'),
    ({"peer": []}, '"peer": must be a list of 1 to 8 IP addresses'),
    ({"peer": [ME], "ttl_s": 5}, '"ttl_s": no such key here'),
    ({"peer": [f"127.0.0.{n}" for n in range(9)]}, '"peer": must be a list of 1 to 8 IP addresses'),
    (b"", '"body": must be one JSON object without a key twice'),
], ids=repr)
def test_a_bad_patch_is_refused_to_the_byte(offline: Broker, body: object, message: str) -> None:
    from .sessions import SESSIONS, control
    session = opened(offline, pin="launcher")
    reply = control(offline, f"{SESSIONS}/{session['id']}", "PATCH", body)
    assert error(reply) == (400, "bad_request", message)
    delete(offline, session)


def test_an_address_is_free_for_the_next_session(offline: Broker) -> None:
    """Docker gives a freed address away at once; nothing is remembered by address."""
    for _ in range(10):
        session = opened(offline, pin="launcher", peer=[ME])
        assert ask(session, source=ME).token
        delete(offline, session)
    kept = opened(offline, peer=[ME])
    assert opened(offline, peer=[ME])["peer"] == kept["peer"]


def test_peers_outside_allow_peers_may_be_pinned(start: Starter) -> None:
    """Once pinned, the pin alone decides; until then allow_peers does."""
    broker = start(profiles={"vertex": {"allow_peers": "198.51.100.0/24"}})
    session = opened(broker, pin="launcher")
    assert ask(session, source=ME).status == 403
    assert patch(broker, session, ME).status == 200
    assert ask(session, source=ME).token
    first = opened(broker)
    assert ask(first, source=ME).status == 403 and get(broker, first).json["peer"] is None
    assert post(broker, peer=[ME]).status == 201
