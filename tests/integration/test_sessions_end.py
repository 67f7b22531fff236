# SPDX-License-Identifier: Apache-2.0
"""Every way a session ends, with 64 requests waiting for a mint: the others live on."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from tests.google.standin import Standin

from . import procfs
from .broker import Broker
from .conftest import Starter
from .crowd import Crowd
from .deadline import FACTOR, eventually
from .http1 import TOKEN, Client, parse, request
from .sessions import (MINT, SESSIONS, Session, address, ask, call, closed_with, control, delete,
                       error, get, is_gone, leased, listed, opened, patch, wait_until_gone,
                       waiting_crowd, whole)

End = Callable[[Broker, Session], None]
TWO = {"vertex": {"listen": None}, "other": {}}
ROOM = {"endpoint_connections": 80}


def assert_refused_for_now(crowd: Crowd) -> None:
    """Each got its 503, whole, and the connection's end."""
    crowd.run()
    assert {member.fault for member in crowd.members} == {None}
    replies = [member.reply for member in crowd.members if member.reply]
    assert {reply.status for reply in replies} == {503}
    assert {reply.json["error"] for reply in replies} == {"temporarily_unavailable"}
    assert {reply.header("Retry-After") for reply in replies} == {"1"}


def _delete(broker: Broker, session: Session) -> None:
    assert delete(broker, session).status == 204


def _reload(broker: Broker, _session: Session) -> None:
    broker.configure(broker=ROOM, profiles={"other": {}})
    assert broker.reload()["result"] == "ok"


def _expire(_broker: Broker, _session: Session) -> None:
    """It ends by itself."""


ENDS: dict[str, tuple[End, str]] = {
    "DELETE": (_delete, "deleted"), "reload": (_reload, "profile_gone"),
    "expiry": (_expire, "expired")}


@contextlib.contextmanager
def witnesses(broker: Broker, google: Standin, profile: str) -> Iterator[list[Session]]:
    """Sessions that must live on: with a token, waiting for one, leased, and unpinned."""
    cached = opened(broker, profile=profile)
    token = ask(cached).token
    google.hold(MINT)
    waiting, unpinned = opened(broker, profile=profile), opened(broker, profile=profile,
                                                               pin="launcher")
    with leased(broker, profile=profile) as lease, Client(address(waiting)) as client, \
            Client(address(unpinned)) as agent:
        yield [cached, waiting, unpinned, lease.session]
        for session in (cached, waiting, unpinned, lease.session):
            assert get(broker, session).json["id"] == session["id"]
        assert ask(cached).token == token
        client.send(request(TOKEN))
        agent.send(request(TOKEN))
        assert patch(broker, unpinned, "127.0.0.1").status == 200
        google.release(MINT)
        assert client.read().token and agent.read().token
        assert ask(lease.session).token and lease.client.is_silent()


@pytest.mark.parametrize("how", ENDS)
def test_64_waiting_requests(start: Starter, google: Standin, how: str) -> None:
    end, reason = ENDS[how]
    broker = start(google, broker=ROOM, profiles=TWO)
    with witnesses(broker, google, "other"):
        session = opened(broker, ttl_s=1 if how == "expiry" else 600)
        with waiting_crowd(google, session) as crowd:
            end(broker, session)
            assert_refused_for_now(crowd)
        wait_until_gone(session, 1)
        line = closed_with(broker, session)
        assert (line["reason"], line["requests"], line["tokens"], line["refused"]) == (
            reason, 66, 0, 64)


@pytest.mark.parametrize("end", ["close", "reset", "half_close"])
def test_64_waiting_requests_and_the_lease_drops(start: Starter, google: Standin,
                                                 end: str) -> None:
    broker = start(google, broker=ROOM, profiles=TWO)
    with witnesses(broker, google, "other"):
        lease = leased(broker)
        with waiting_crowd(google, lease.session) as crowd:
            getattr(lease.client, end)()
            assert_refused_for_now(crowd)
        line = closed_with(broker, lease.session)
        assert (line["reason"], line["refused"]) == ("lease", 64)
        lease.client.close()


def test_64_waiting_requests_and_sigterm(start: Starter, google: Standin) -> None:
    """They wait for their token as long as they would have; so do those of other sessions."""
    broker = start(google, broker=ROOM, profiles=TWO)
    with leased(broker) as lease, leased(broker, profile="other") as other:
        with waiting_crowd(google, lease.session) as crowd, \
                waiting_crowd(google, other.session) as others:
            broker.process.terminate()
            broker.wait_for_log("stopping")
            google.release(MINT)
            for each in (crowd, others):
                each.run()
                assert {m.reply.status if m.reply else m.fault for m in each.members} == {200}
        assert lease.is_over() and other.is_over()
    assert broker.wait() == 0
    for each in (lease, other):
        line, = broker.audit_of("session.close", session=each.session["id"])
        assert (line["reason"], line["tokens"]) == ("broker_stop", 64)


def test_64_waiting_requests_and_sigterm_without_google(start: Starter, google: Standin) -> None:
    broker = start(google, broker=ROOM)
    session = opened(broker)
    begun = time.monotonic()
    with waiting_crowd(google, session) as crowd:
        broker.process.terminate()
        assert_refused_for_now(crowd)
    assert broker.wait() == 0
    assert time.monotonic() - begun < 5 * FACTOR
    line, = broker.audit_of("session.close", session=session["id"])
    assert (line["reason"], line["refused"]) == ("broker_stop", 64)
    google.release(MINT)


def test_a_lease_does_not_hold_the_end_up(broker: Broker) -> None:
    """SIGTERM with an idle lease took the five seconds that requests under way have."""
    with leased(broker) as lease, leased(broker) as other:
        begun = time.monotonic()
        broker.process.terminate()
        assert lease.is_over() and other.is_over()
        assert broker.wait() == 0
        assert time.monotonic() - begun < 1.5 * FACTOR
    assert closed_with(broker, lease.session)["reason"] == "broker_stop"


def test_connections_that_outlive_the_drain(start: Starter) -> None:
    """The server's timer was set once more after it was stopped: a use after free."""
    broker = start()
    with broker.control_client() as stuck:
        stuck.send(whole("/healthz") * 300)  # whose answers nobody reads
        assert broker.control("/healthz").status == 200
        assert broker.stop() == 0


# every state that a request can be in


@pytest.mark.parametrize("end", ["DELETE", "SIGTERM", "lease"])
def test_requests_in_every_state_when_a_session_ends(start: Starter, google: Standin,
                                                     end: str) -> None:
    """Not whole, waiting for the pin, for the rate, for a token, being written, and idle."""
    broker = start(google, broker={"endpoint_rate": 5})
    for pin in ("launcher", "first"):
        lease = leased(broker, pin=pin)
        clients = [Client(address(lease.session)) for _ in range(30)]
        google.hold(MINT)
        for number, client in enumerate(clients):
            client.send(request(("/", TOKEN, "/unknown")[number % 3]) * (1 + number % 4))
        clients[0].send(b"GET / HTTP/1.1\r\nHo")
        eventually("some wait", lambda: pin == "launcher" or google.waiting(MINT))
        if end == "DELETE":
            assert delete(broker, lease.session).status == 204
            assert lease.is_over()
        elif end == "lease":
            lease.client.close()
        else:
            broker.process.terminate()
        for client in clients:
            client.rest()
            client.close()
        wait_until_gone(lease.session)
        google.release(MINT)
        google.clear()
        if end == "SIGTERM":
            assert broker.wait() == 0
            break
        assert closed_with(broker, lease.session)["reason"] == \
            ("deleted" if end == "DELETE" else "lease")


def test_delete_from_within_a_flood(start: Starter) -> None:
    """Of the very session that is flooded, in mid-flood; the next one is another's."""
    broker = start(broker={"endpoint_rate": 0})
    for _ in range(20):
        session = opened(broker)
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(Client(address(session))) for _ in range(16)]
            for client in clients:
                client.send(request("/") * 50)
            assert clients[0].read().status == 200
            assert delete(broker, session).status == 204
            answers = 1
            for client in clients:
                rest = client.rest()
                while rest:  # each that came is whole, and of nobody else
                    found = parse(rest)
                    assert found and (found[0].status, found[0].text) == (200, "computeMetadata/\n"), rest
                    answers, rest = answers + 1, rest[found[1]:]
            assert 16 < answers < 16 * 50
            assert is_gone(session)
    assert listed(broker) == []


def test_patch_and_delete_race_with_waiting_requests(broker: Broker, google: Standin) -> None:
    for number in range(30):
        session = opened(broker, pin="launcher")
        path = f"{SESSIONS}/{session['id']}"
        google.hold(MINT)
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(Client(address(session))) for _ in range(10)]
            for client in clients:
                client.send(request(TOKEN))
            control_client = stack.enter_context(broker.control_client())
            calls = [whole(path, "PATCH", {"peer": ["127.0.0.1"]}), whole(path, "DELETE"),
                     whole(path, "PATCH", {"peer": ["127.0.0.2"]}), whole(path, "DELETE"),
                     whole(path)]
            control_client.send(b"".join(calls[number % 2:]))
            statuses = [control_client.read().status for _ in calls[number % 2:]]
            assert statuses == [200, 204, 404, 404, 404][number % 2:]
            for client in clients:  # what had not been read yet is cut
                assert client.rest()[:13] in (b"", b"HTTP/1.1 503 ")
        google.release(MINT)
        google.clear()
    assert listed(broker) == []


def test_two_connections_delete_and_drop_at_once(broker: Broker) -> None:
    for number in range(30):
        lease = leased(broker)
        path = f"{SESSIONS}/{lease.session['id']}"
        with broker.control_client() as one, broker.control_client() as two:
            one.send(whole(path, "DELETE"))
            if number % 2:
                lease.client.close()
            two.send(whole(path, "DELETE") + whole(path, "PATCH", {"peer": ["127.0.0.1"]}))
            assert one.read().status in (204, 404)
            assert two.read().status in (204, 404) and two.read().status == 404
        lease.client.close()
    eventually("none left", lambda: listed(broker) == [])
    assert len(broker.audit_of("session.close")) == 30


# reload


def test_a_reload_that_changes_nothing_of_theirs_keeps_sessions(start: Starter,
                                                                google: Standin) -> None:
    broker = start(google)
    session, token = opened(broker), ""
    token = ask(session).token
    with Client(address(session)) as kept, leased(broker) as lease:
        for settings in ({"project": "p-new"}, {"lifetime": "30m"}, {"max_ttl": "1m"},
                         {"allow_peers": "198.51.100.0/24"}, {"advertise_host": "elsewhere"},
                         {"allow_groups": "daemon"}, {"listen": None}):
            broker.configure(profiles={"vertex": settings})
            assert broker.reload()["result"] == "ok"
            assert kept.ask(TOKEN).token == token and ask(session).token == token
            assert kept.ask("/computeMetadata/v1/project/project-id").text == "my-project"
        assert lease.client.is_silent() and len(listed(broker)) == 2
        assert get(broker, session).json["expires_at"] == session["expires_at"]


@pytest.mark.parametrize("settings", [
    {"service_account": "agent2@my-project.iam.gserviceaccount.com"},
    {"scopes": "https://www.googleapis.com/auth/generative-language"}], ids=str)
def test_a_reload_that_changes_the_grant_ends_sessions(start: Starter, settings: dict) -> None:
    broker = start(profiles=TWO)
    session, other = opened(broker), opened(broker, profile="other")
    with leased(broker) as lease:
        broker.configure(profiles={"vertex": {"listen": None, **settings}, "other": {}})
        assert broker.reload()["result"] == "ok"
        assert lease.is_over()
    wait_until_gone(session, 1)
    assert closed_with(broker, session)["reason"] == "profile_changed"
    assert ask(other).token and [s["id"] for s in listed(broker)] == [other["id"]]


def test_a_refused_reload_keeps_sessions(broker: Broker) -> None:
    session = opened(broker)
    broker.write_config("[broker]\nnonsense = 1\n")
    assert broker.reload()["result"] == "refused"
    assert ask(session).token


def test_sessions_follow_the_audit_trail(start: Starter) -> None:
    broker = start()
    session = opened(broker)
    elsewhere = broker.directory / "elsewhere.jsonl"
    broker.configure(broker={"audit_log": elsewhere})
    broker.signal(signal.SIGHUP)
    eventually("a line elsewhere", lambda: elsewhere.exists() and elsewhere.read_text())
    assert ask(session).token
    delete(broker, session)
    eventually("its end there", lambda: "session.close" in elsewhere.read_text())
    assert broker.audit_of("session.close") == []


def test_lower_limits_end_nobody(start: Starter) -> None:
    broker = start()
    sessions = [opened(broker) for _ in range(4)]
    broker.configure(broker={"max_sessions": 2, "max_sessions_per_user": 2})
    assert broker.reload()["result"] == "ok"
    assert all(ask(session).token for session in sessions)
    reply = control(broker, SESSIONS, "POST", {"profile": "vertex", "listen": "127.0.0.1"})
    assert error(reply)[:2] == (429, "limit")


def test_a_storm_of_reloads_while_sessions_come_and_go(start: Starter, google: Standin) -> None:
    broker = start(google, profiles=TWO)
    lives = opened(broker, profile="other")
    token = ask(lives).token
    broker.write_config((broker.directory / "postern.conf").read_text())
    for number in range(60):
        session = opened(broker)
        lease = leased(broker)
        with Client(address(session)) as client:
            client.send(request(TOKEN))
            if number % 3 == 0:
                broker.configure(profiles={"other": {}})
            else:
                google.write_adc(broker.sections["source"]["file"], **google.new_login())
            for _ in range(3):
                broker.signal(signal.SIGHUP)
            if number % 2:
                delete(broker, session)
                lease.client.close()
        lease.client.close()
        broker.configure(profiles=TWO)
        eventually("the profile back", lambda: (broker.signal(signal.SIGHUP),
                                                len(broker.status()["profiles"]) == 2)[1])
        assert ask(lives).token == token
        for each in listed(broker):
            if each["id"] != lives["id"]:
                delete(broker, each)
    assert [s["id"] for s in listed(broker)] == [lives["id"]]


# expiry


def test_a_session_ends_at_its_time(broker: Broker) -> None:
    longer = opened(broker, ttl_s=60)
    broker.until_token()  # nothing is minted while the short one lives
    begun = time.monotonic()
    session = opened(broker, ttl_s=1)
    assert ask(session).token
    wait_until_gone(session, 3)
    assert 0.9 < time.monotonic() - begun < 1.5 * FACTOR
    assert closed_with(broker, session)["reason"] == "expired"
    assert error(get(broker, session))[:2] == (404, "session_unknown")
    assert ask(longer).token


def test_500_sessions_expire_together(start: Starter) -> None:
    broker = start(broker={"max_sessions_per_user": 600})
    before = len(procfs.descriptors(broker.pid))
    with broker.control_client() as client:
        for _ in range(500):
            assert call(client, SESSIONS, "POST", {
                "profile": "vertex", "listen": "127.0.0.1", "ttl_s": 2}).status == 201
    eventually("none left", lambda: broker.status()["sessions"]["open"] == 0, 8)
    assert len(procfs.descriptors(broker.pid)) <= before + 1
    assert len(broker.audit_of("session.close", reason="expired")) == 500


def test_a_killed_brokers_lease_breaks(broker: Broker) -> None:
    with leased(broker) as lease:
        broker.kill()
        assert lease.client.rest() == b""
