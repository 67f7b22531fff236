# SPDX-License-Identifier: Apache-2.0
"""A session is its owner's; the control socket is everybody's who may open it."""

from __future__ import annotations

import contextlib
import grp
from collections.abc import Iterator
from typing import Any

import pytest

from . import procfs
from .broker import Broker
from .callers import ALICE, BOB, GROUP, client_of, needs_root
from .conftest import Starter
from .deadline import eventually
from .http1 import Client
from .sessions import (SESSIONS, Lease, Session, ask, call, control, error, get, listed, opened,
                       wait_until_gone, whole)

pytestmark = needs_root

GID = grp.getgrnam(GROUP).gr_gid
ROOT = 0


@pytest.fixture
def shared(start: Starter) -> Broker:
    """A broker whose socket is a group's."""
    return start(broker={"control_group": GROUP})


@contextlib.contextmanager
def as_user(broker: Broker, uid: int) -> Iterator[Client]:
    """A connection of a member of the group."""
    with client_of(broker, uid, uid, [GID]) as client:
        yield client


def call_as(broker: Broker, uid: int, *how: Any) -> Any:
    """One call of a member of the group."""
    with as_user(broker, uid) as client:
        return call(client, *how)


def opened_by(broker: Broker, uid: int, **wish: Any) -> Session:
    """A session of that user."""
    reply = call_as(broker, uid, SESSIONS, "POST",
                    {"profile": "vertex", "listen": "127.0.0.1", **wish})
    assert reply.status == 201, reply
    session: Session = reply.json
    assert session["owner"] == uid
    return session


def assert_alike(mine: Any, unknown: Any) -> None:
    """Two answers that differ in their Date at most."""
    def head(reply: Any) -> list[tuple[str, str]]:
        return [each for each in reply.headers if each[0] != "Date"]
    assert (mine.status, mine.body, head(mine)) == (unknown.status, unknown.body, head(unknown))


def test_to_others_a_session_does_not_exist(shared: Broker) -> None:
    """With the same bytes as one that never was."""
    session = opened_by(shared, ALICE, pin="launcher")
    path = f"{SESSIONS}/{session['id']}"
    for method, body in (("GET", None), ("PATCH", {"peer": ["127.0.0.1"]}), ("DELETE", None)):
        assert_alike(call_as(shared, BOB, path, method, body),
                     call_as(shared, BOB, f"{SESSIONS}/0123456789abcdef", method, body))
    assert call_as(shared, BOB, SESSIONS).json == {"sessions": []}
    assert get(shared, session).json["peer"] is None
    lines = shared.audit_of("control.refuse")
    assert len(lines) == 6
    for line in lines:
        assert (line["uid"], line["reason"], line["status"]) == (BOB, "session_unknown", 404)


def test_each_sees_and_ends_only_its_own(shared: Broker) -> None:
    alices, bobs = opened_by(shared, ALICE), opened_by(shared, BOB)
    for uid, own, other in ((ALICE, alices, bobs), (BOB, bobs, alices)):
        with as_user(shared, uid) as client:
            assert [s["id"] for s in call(client, SESSIONS).json["sessions"]] == [own["id"]]
            assert call(client, f"{SESSIONS}/{own['id']}").json["owner"] == uid
            assert call(client, f"{SESSIONS}/{other['id']}", "DELETE").status == 404
    assert call_as(shared, ALICE, f"{SESSIONS}/{alices['id']}", "DELETE").status == 204
    assert ask(bobs).token
    assert shared.wait_for_audit("session.close", session=alices["id"])["reason"] == "deleted"


def test_root_sees_and_ends_all(shared: Broker) -> None:
    sessions = [opened_by(shared, uid) for uid in (ALICE, BOB)]
    assert [s["id"] for s in listed(shared)] == [s["id"] for s in sessions]
    for session in sessions:
        assert control(shared, f"{SESSIONS}/{session['id']}", "PATCH",
                       {"peer": ["127.0.0.1"]}).status == 200
        assert control(shared, f"{SESSIONS}/{session['id']}", "DELETE").status == 204


def test_what_is_roots_is_not_everybodys(shared: Broker) -> None:
    session = opened(shared)
    assert session["owner"] == ROOT
    assert call_as(shared, ALICE, f"{SESSIONS}/{session['id']}").status == 404


def test_another_group_may_not_even_connect(shared: Broker) -> None:
    with pytest.raises(PermissionError):
        client_of(shared, ALICE, ALICE)


def test_the_credentials_are_those_of_the_connection(shared: Broker) -> None:
    """Whatever a body says."""
    status, code, _ = error(call_as(shared, ALICE, SESSIONS, "POST", {
        "profile": "vertex", "listen": "127.0.0.1", "owner": ROOT}))
    assert (status, code) == (400, "bad_request")


def test_the_limit_a_user_is_each_users(start: Starter) -> None:
    broker = start(broker={"control_group": GROUP, "max_sessions_per_user": 2})
    for uid in (ALICE, BOB, ROOT):
        for _ in range(2):
            if uid == ROOT:
                opened(broker)
            else:
                opened_by(broker, uid)
    status, code, message = error(call_as(broker, ALICE, SESSIONS, "POST", {
        "profile": "vertex", "listen": "127.0.0.1"}))
    assert (status, code) == (429, "limit") and f"uid {ALICE}" in message


def test_leases_of_others(shared: Broker) -> None:
    lease = Lease(client_of(shared, ALICE, ALICE, [GID]))
    assert lease.session["owner"] == ALICE
    assert call_as(shared, BOB, f"{SESSIONS}/{lease.session['id']}", "DELETE").status == 404
    assert ask(lease.session).token
    lease.client.close()
    wait_until_gone(lease.session, 1)


# allow_groups


@pytest.mark.parametrize(("groups", "status"), [
    ("", 201), (GROUP, 201), ("daemon", 403), (f"daemon, {GROUP}", 201),
    ("no-such-group", 403), (f"no-such-group, {GROUP}", 201)])
def test_allow_groups(start: Starter, groups: str, status: int) -> None:
    broker = start(broker={"control_group": GROUP},
                   profiles={"vertex": {"allow_groups": groups or None}, "open": {}})
    reply = call_as(broker, ALICE, SESSIONS, "POST", {"profile": "vertex", "listen": "127.0.0.1"})
    assert reply.status == status
    if status == 403:
        assert error(reply) == (
            403, "forbidden", "none of the caller's groups is in the profile's allow_groups")
        assert broker.wait_for_audit("control.refuse", uid=ALICE, reason="forbidden")
    assert opened_by(broker, ALICE, profile="open") and opened(broker)


def test_the_main_group_counts(start: Starter) -> None:
    broker = start(broker={"control_group": GROUP},
                   profiles={"vertex": {"allow_groups": GROUP}})
    with client_of(broker, ALICE, GID) as client:
        assert call(client, SESSIONS, "POST",
                    {"profile": "vertex", "listen": "127.0.0.1"}).status == 201


def test_many_groups(start: Starter) -> None:
    """Of which the last one lets in."""
    broker = start(broker={"control_group": GROUP},
                   profiles={"vertex": {"allow_groups": "daemon"}})
    groups = [GID, *range(60000, 60250), grp.getgrnam("daemon").gr_gid]
    with client_of(broker, ALICE, ALICE, groups) as client:
        assert call(client, SESSIONS, "POST",
                    {"profile": "vertex", "listen": "127.0.0.1"}).status == 201


# one user's clients are no hindrance to another's


def test_half_open_connections_of_one_user_leave_room_for_others(shared: Broker) -> None:
    """One user's silent connections took every place there was."""
    silent = []
    data = whole(SESSIONS, "POST", {"profile": "vertex"})
    try:
        for number in range(1000):
            client = eventually("a place in the backlog", lambda: connected(shared))
            silent.append(client)
            with contextlib.suppress(OSError):
                client.send(data[:number % len(data)])
        assert procfs.threads(shared.pid) == 1
        session = opened_by(shared, ALICE)
        assert ask(session).token
        assert call_as(shared, ALICE, f"{SESSIONS}/{session['id']}", "DELETE").status == 204
    finally:
        for client in silent:
            client.close()
    eventually("room again", lambda: control(shared, "/healthz").status == 200)


def connected(broker: Broker) -> Client | None:
    """A control connection, or nothing where the backlog is full."""
    try:
        return broker.control_client()
    except BlockingIOError:
        return None
