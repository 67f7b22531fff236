# SPDX-License-Identifier: Apache-2.0
"""Opening sessions, what they say of themselves, and what is refused: contract, section 7."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.google.standin import ACCOUNT, Standin

from .broker import Broker
from .conftest import Starter
from .http1 import TOKEN, request
from .sessions import (SESSIONS, address, ask, call, control, delete, error, get, is_gone, listed,
                       opened, patch, post, whole)
from .test_control_socket import moment

OFFLINE = {"profiles": {"vertex": {"listen": None, "max_ttl": "2h"},
                        "other": {"listen": None, "project": "other-project"}}}
KEYS = {"id", "profile", "label", "owner", "attach", "endpoint", "listen", "pin", "peer",
        "created_at", "expires_at", "lease", "env", "counters"}


@pytest.fixture(autouse=True)
def _none_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """The shared broker has no session between tests."""
    yield
    if "offline" in request.fixturenames:
        shared = request.getfixturevalue("offline")
        for session in listed(shared):
            assert delete(shared, session).status == 204


def test_a_session_says_all_of_itself(offline: Broker) -> None:
    reply = post(offline, label="a label: ~ \"quoted\"", ttl_s=600)
    assert reply.status == 201 and reply.header("Content-Type") == "application/json"
    session = reply.json
    assert set(session) == KEYS
    assert re.fullmatch(r"[0-9a-f]{16}", session["id"])
    assert session["profile"] == "vertex" and session["label"] == "a label: ~ \"quoted\""
    assert session["owner"] == os.getuid() and session["attach"] == "gateway"
    assert session["endpoint"] == session["listen"] and address(session)[0] == "127.0.0.1"
    assert (session["pin"], session["peer"], session["lease"]) == ("first", None, False)
    assert abs(moment(session["created_at"]) - time.time()) < 30
    assert moment(session["expires_at"]) - moment(session["created_at"]) == 600
    assert session["counters"] == {"requests": 0, "tokens": 0, "refused": 0}
    host_port = session["endpoint"]
    assert session["env"] == {
        "GCE_METADATA_HOST": host_port, "GCE_METADATA_IP": host_port, "GCE_METADATA_ROOT": host_port,
        "METADATA_SERVER_DETECTION": "assume-present", "GCE_METADATA_MTLS_MODE": "none",
        "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    assert get(offline, session).json == session and listed(offline) == [session]


def test_only_the_profile_is_required(start: Starter) -> None:
    broker = start(broker={"session_listen": "127.0.0.1"}, profiles={"vertex": {"max_ttl": "3h"}})
    reply = control(broker, SESSIONS, "POST", {"profile": "vertex"})
    assert reply.status == 201
    session = reply.json
    assert (session["label"], session["pin"], session["lease"]) == (None, "first", False)
    assert moment(session["expires_at"]) - moment(session["created_at"]) == 3 * 3600


def test_null_is_as_good_as_absent_where_the_answer_has_it(offline: Broker) -> None:
    """What a session says of itself can be sent back: label and peer may be null in answers."""
    session = opened(offline, label=None, peer=None)
    assert (session["label"], session["peer"]) == (None, None)


def test_a_session_serves_its_profile_and_counts(offline: Broker) -> None:
    session = opened(offline, profile="other")
    assert ask(session, "/computeMetadata/v1/project/project-id").text == "other-project"
    assert ask(session).token and ask(session).token
    assert ask(session, "/unknown").status == 404
    now = get(offline, session).json
    assert now["counters"] == {"requests": 4, "tokens": 2, "refused": 1}
    assert now["peer"] == ["127.0.0.1"]


def test_sessions_mint_each_their_own(start: Starter, google: Standin) -> None:
    broker = start(google, profiles={"vertex": {}, "shared": {"token_sharing": "profile"}})
    tokens = [ask(opened(broker)).token for _ in range(3)]
    tokens += [ask(opened(broker, profile="shared")).token for _ in range(3)]
    assert len(set(tokens)) == 4 and len(set(tokens[3:])) == 1


def test_deleted_is_closed_before_the_answer(offline: Broker) -> None:
    for _ in range(20):
        session = opened(offline)
        reply = delete(offline, session)
        assert reply.status == 204 and reply.body == b"" and is_gone(session)
        assert reply.header("Content-Length") is None  # RFC 9110 section 8.6
        assert error(get(offline, session))[:2] == (404, "session_unknown")
        assert error(delete(offline, session))[:2] == (404, "session_unknown")
        assert error(patch(offline, session, "127.0.0.1"))[:2] == (404, "session_unknown")


def test_the_audit_trail_tells_a_sessions_life(offline: Broker) -> None:
    session = opened(offline, label="audited", ttl_s=60)
    line = offline.wait_for_audit("session.open", session=session["id"])
    assert line.items() >= {"profile": "vertex", "label": "audited", "uid": os.getuid(),
                            "pid": os.getpid(), "attach": "gateway", "pin": "first",
                            "listen": session["listen"], "ttl_s": 60}.items()
    assert ask(session).token
    served = offline.wait_for_audit("token.serve", session=session["id"])
    assert (served["peer"], served["label"], served["account"]) == ("127.0.0.1", "audited", ACCOUNT)
    assert ask(session, "/unknown").status == 404
    delete(offline, session)
    end = offline.wait_for_audit("session.close", session=session["id"])
    assert (end["reason"], end["label"], end["profile"]) == ("deleted", "audited", "vertex")
    assert (end["requests"], end["tokens"], end["refused"]) == (2, 1, 1)


def test_ports_are_new_ones_and_outside_the_kernels_own(offline: Broker) -> None:
    """A stale sandbox does not meet a new session."""
    ports = []
    for _ in range(200):
        session = opened(offline)
        ports.append(address(session)[1])
        delete(offline, session)
    assert len(set(ports)) == 200 and all(20000 <= port < 32768 for port in ports)


def test_the_first_port_is_random(start: Starter) -> None:
    ports = {address(opened(start()))[1] for _ in range(4)}
    assert len(ports) > 2


def test_a_port_in_use_is_passed_over(offline: Broker) -> None:
    first = address(opened(offline))[1]
    taken = []
    try:
        for port in range(first + 1, first + 6):
            sock = socket.socket()
            taken.append(sock)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(("127.0.0.1", (port - 20000) % 12768 + 20000))
            sock.listen()
        assert ask(opened(offline)).token
    finally:
        for sock in taken:
            sock.close()


def test_a_port_may_be_asked_for(offline: Broker) -> None:
    """What a launcher needs to open a session again where its container looks for it."""
    session = opened(offline)
    status, code, message = error(post(offline, listen=session["listen"]))
    assert (status, code) == (409, "conflict") and session["listen"] in message
    delete(offline, session)
    again = opened(offline, listen=session["listen"])
    assert again["listen"] == session["listen"] and ask(again).token


@pytest.mark.parametrize("listen", ["::1", "[::1]:0"])
def test_ipv6(offline: Broker, listen: str) -> None:
    session = opened(offline, listen=listen)
    host, port = address(session)
    assert host == "::1" and session["listen"] == session["endpoint"] == f"[::1]:{port}"
    assert session["env"]["NO_PROXY"] == "::1"
    assert ask(session, host=f"[::1]:{port}").token
    assert get(offline, session).json["peer"] == ["::1"]


def test_a_profiles_name_for_itself_is_the_endpoint(start: Starter) -> None:
    """Not on loopback: what the sandbox calls the host. TEST-NET-1, which need not be there."""
    broker = start(broker={"session_listen": "192.0.2.1"},
                   profiles={"vertex": {"advertise_host": "broker.example"}})
    session = opened(broker, listen=...)
    assert session["listen"].startswith("192.0.2.1:")
    assert session["endpoint"] == f"broker.example:{address(session)[1]}"
    assert session["env"]["no_proxy"] == "broker.example"
    assert session["env"]["GCE_METADATA_ROOT"] == session["endpoint"]


# refusals

BAD: list[tuple[dict[str, Any], str]] = [
    ({"colour": 1}, '"colour": no such key here'),
    ({"Profile": "vertex"}, '"Profile": no such key here'),
    ({"": 1}, '"": no such key here'),
    ({"a\nb\"": 1}, r'"a\x0ab\"": no such key here'),
    ({"owner": 0}, '"owner": no such key here'),
    ({"id": "0123456789abcdef"}, '"id": no such key here'),
    *(({"profile": value}, '"profile": must be the name of a profile')
      for value in (None, 1, True, [], {}, ["vertex"])),
    *(({"ttl_s": value}, '"ttl_s": must be a number of seconds from 1')
      for value in (0, -1, 1.5, 1.0, "60", "1h", None, True, [], -2**63)),
    ({"ttl_s": 7201}, "ttl_s is 7201, the profile's max_ttl 7200 s"),
    ({"ttl_s": 2**63 - 1}, f"ttl_s is {2**63 - 1}, the profile's max_ttl 7200 s"),
    *(({"label": value}, '"label": must be at most 128 printable ASCII characters')
      for value in ("x" * 129, "a\nb", "a\tb", "\x7f", "caf\u00e9", 1, True, [])),
    *(({"attach": value}, '"attach": must be "gateway" or "inside"')
      for value in ("Gateway", "", "outside", 1, None)),
    *(({"listen": value}, '"listen": must be an IP address, with or without a port')
      for value in ("localhost", "", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.1",
                    "0.0.0.0", "0.0.0.0:80", "::", "[::]:80", "224.0.0.1", "ff02::1",
                    "255.255.255.255", "127.0.0.1 ", "[::1", "::1:x", 80, True, [])),
    *(({"pin": value}, '"pin": must be "launcher" or "first"')
      for value in ("none", "First", "", None, 1, ["first"])),
    *(({"peer": value}, '"peer": must be a list of 1 to 8 IP addresses')
      for value in ([], "127.0.0.1", ["x"], [1], ["127.0.0.1:1"], ["127.0.0.0/8"], [None], {},
                    [["127.0.0.1"]], [f"127.0.0.{n}" for n in range(1, 10)])),
    *(({"lease": value}, '"lease": must be true or false') for value in (1, "yes", None, [])),
    *(({"preflight": value}, '"preflight": must be "none", "grant" or "mint"')
      for value in ("Mint", "", True, None, 1)),
    ({"peer": ["224.0.0.1"]},
     "peer 224.0.0.1 is no address of a sandbox: it is the host's own, or not one host's"),
    ({"peer": ["127.0.0.1", "::"]},
     "peer :: is no address of a sandbox: it is the host's own, or not one host's"),
    *(({"listen": value}, f"listen {value} is neither loopback nor an address of a bridge without "
       "a physical port") for value in ("192.0.2.7", "169.254.169.254", "fd00::7")),
]


@pytest.mark.parametrize(("wish", "message"), BAD, ids=[repr(case[0])[:60] for case in BAD])
def test_a_bad_wish_is_refused_to_the_byte(offline: Broker, wish: dict[str, Any],
                                           message: str) -> None:
    reply = post(offline, **wish)
    assert error(reply) == (400, "bad_request", message)
    assert listed(offline) == []


NO_OBJECT = [b"", b"{", b"null", b"[]", b'"x"', b"1", b"{} {}", b'{"profile":"vertex"}x',
             b'{"profile":"vertex","profile":"vertex"}', b'{"profile":"ver\0tex"}', b"\0",
             b'{"profile":"ver\\u0000tex"}', b'{"profile":"\xff"}', b'\xef\xbb\xbf{"profile":"vertex"}',
             b"[" * 60000, b'{"profile":' * 5000, b'{"a":[' * 10000, b'{"profile":1e400}',
             b"{'profile':'vertex'}", b'{"profile":"vertex",}']


@pytest.mark.parametrize("body", NO_OBJECT, ids=[repr(body)[:40] for body in NO_OBJECT])
def test_what_is_no_object_is_refused(offline: Broker, body: bytes) -> None:
    status, code, message = error(control(offline, SESSIONS, "POST", body))
    assert (status, code) == (400, "bad_request")
    assert message == '"body": must be one JSON object without a key twice'


def test_a_wish_without_a_profile_says_so(offline: Broker) -> None:
    assert error(post(offline, profile=...)) == (400, "bad_request", '"profile": is required')


@pytest.mark.parametrize("name", ["nobody", "", "Vertex", "vertex ", "x" * 5000, "\"\\\n", "vertex\u00e9"])
def test_an_unknown_profile_is_named(offline: Broker, name: str) -> None:
    status, code, message = error(post(offline, profile=name))
    assert (status, code) == (404, "profile_unknown")
    assert message.startswith('there is no profile "') and len(message) < 512


def test_without_docker0_the_refusal_says_what_to_do(offline: Broker) -> None:
    if os.path.exists("/sys/class/net/docker0"):
        pytest.skip("this host has a docker0")
    assert error(post(offline, listen=...)) == (
        400, "bad_request",
        "there is no docker0 to listen on: name an address with listen, or set session_listen")


@pytest.mark.parametrize("target", [f"{SESSIONS}/", f"{SESSIONS}/0", f"{SESSIONS}/0123456789abcdeF",
                                    f"{SESSIONS}/0123456789abcdef", f"{SESSIONS}/0123456789abcdef0",
                                    f"{SESSIONS}/0123456789abcdef/", f"{SESSIONS}/../status"])
@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_an_unknown_session(offline: Broker, target: str, method: str) -> None:
    assert error(control(offline, target, method)) == (
        404, "session_unknown", "there is no such session")


def test_methods_that_a_session_does_not_take(offline: Broker) -> None:
    session = opened(offline)
    for method in ("POST", "PUT", "OPTIONS"):
        assert control(offline, f"{SESSIONS}/{session['id']}", method).status == 405
    for method in ("PATCH", "DELETE", "PUT"):
        assert control(offline, SESSIONS, method).status == 405
    assert listed(offline) == [session]


def test_refusals_are_audited(offline: Broker) -> None:
    before = len(offline.audit_of("control.refuse", reason="profile_unknown"))
    for _ in range(3):
        post(offline, profile="nobody")
    lines = offline.audit_of("control.refuse", reason="profile_unknown")[before:]
    assert len(lines) == 3
    assert all((line["uid"], line["pid"], line["status"]) == (os.getuid(), os.getpid(), 404)
               for line in lines)


def test_a_control_connection_is_kept_through_refusals(offline: Broker) -> None:
    with offline.control_client() as client:
        for _ in range(5):
            assert call(client, SESSIONS, "POST", {"profile": "nobody"}).status == 404
            session = call(client, SESSIONS, "POST", {"profile": "vertex", "listen": "127.0.0.1"})
            assert session.status == 201
            assert call(client, f"{SESSIONS}/{session.json['id']}", "DELETE").status == 204


def test_pipelined_calls_are_answered_in_order(offline: Broker) -> None:
    wish = {"profile": "vertex", "listen": "127.0.0.1"}
    with offline.control_client() as client:
        client.send(b"".join([whole(SESSIONS, "POST", wish), whole("/healthz"),
                              whole(SESSIONS, "POST", {"profile": "nobody"}), whole(SESSIONS),
                              whole(SESSIONS, "POST", wish), whole(SESSIONS, "DELETE")]))
        assert [client.read().status for _ in range(6)] == [201, 200, 404, 200, 201, 405]
    assert len(listed(offline)) == 2


# limits


def test_the_limit_of_sessions(start: Starter) -> None:
    broker = start(broker={"max_sessions": 3, "max_sessions_per_user": 3})
    sessions = [opened(broker) for _ in range(3)]
    assert error(post(broker)) == (429, "limit", "3 sessions are open, max_sessions is 3")
    assert broker.status()["sessions"] == {"open": 3, "limit": 3}
    assert broker.status()["profiles"][0]["sessions"] == 3
    delete(broker, sessions[0])
    assert post(broker).status == 201


def test_the_limit_of_sessions_a_user(start: Starter) -> None:
    broker = start(broker={"max_sessions_per_user": 2})
    for _ in range(2):
        opened(broker)
    assert error(post(broker)) == (
        429, "limit",
        f"2 sessions of uid {os.getuid()} are open, max_sessions_per_user is 2")


def test_a_sessions_endpoint_has_limits_of_its_own(start: Starter) -> None:
    broker = start(broker={"endpoint_connections": 2})
    one, two = opened(broker), opened(broker)
    with broker.control_client():
        held = []
        try:
            for _ in range(2):
                held.append(socket.create_connection(address(one)))
            assert ask(one, "/").status == 503 and ask(two, "/").status == 200
        finally:
            for sock in held:
                sock.close()


def test_metrics_count_sessions(start: Starter) -> None:
    broker = start()
    session = opened(broker)
    assert "\npostern_sessions 1\n" in broker.control("/metrics").text
    delete(broker, session)
    assert "\npostern_sessions 0\n" in broker.control("/metrics").text


def test_a_session_speaks_the_metadata_protocol(offline: Broker) -> None:
    session = opened(offline)
    assert ask(session, flavor=False).status == 403
    assert ask(session, host="evil.example").status == 403
    assert ask(session, "/", headers=[("X-Forwarded-For", "")]).status == 403
    assert ask(session, method="POST").status == 405
    assert request(TOKEN)
