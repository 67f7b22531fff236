# SPDX-License-Identifier: Apache-2.0
"""Sessions inside a sandbox: what a door hands over is served there, and ends with it."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.google.standin import Standin

from . import leaks
from .attaching import sandbox  # noqa: F401 - fixtures
from .broker import Broker
from .conftest import Starter
from .deadline import FACTOR, eventually
from .doors import INSIDE6, Door, Inside, Sandbox, attached, flat_descriptors
from .http1 import TOKEN
from .namespaces import Namespace, needs_namespaces
from .sessions import SESSIONS, closed_with, control, delete, error, get, listed, patch, post

pytestmark = needs_namespaces

SEEN_S = 0.1 * FACTOR  # issue: within 100 ms


def mode(path: Path) -> int:
    """Its permissions."""
    return stat.S_IMODE(path.stat().st_mode)


# the socket


@pytest.mark.parametrize("umask", [0, 0o777])
def test_only_the_brokers_user_gets_to_the_attach_socket(start: Starter, umask: int) -> None:
    broker = start(umask=umask, broker={"audit_log": "off"})
    private = broker.directory / "private"
    assert (mode(private), mode(private / "attach"), mode(private / "attach" / "sock")) == \
        (0o700, 0o755, 0o666)
    assert stat.S_ISSOCK((private / "attach" / "sock").stat().st_mode)


def test_the_socket_of_a_killed_broker_is_no_hindrance(start: Starter, sandbox: Sandbox) -> None:
    broker = start()
    directory = broker.directory / "private" / "attach"
    before = directory.stat().st_ino
    broker.kill()
    assert (directory / "sock").exists()
    broker.start()
    assert directory.stat().st_ino == before  # a door's view of it goes on
    with attached(broker, sandbox):
        assert sandbox.ask().token
    assert broker.stop() == 0
    assert not (directory / "sock").exists() and directory.stat().st_ino == before


def spoil_owner(directory: Path) -> str:
    (directory / "private").mkdir()
    os.chown(directory / "private", 4711, 4711)
    return "private: belongs to uid 4711"


def spoil_by_link(directory: Path) -> str:
    (directory / "elsewhere").mkdir()
    (directory / "private").symlink_to("elsewhere")
    return "private: "


def spoil_socket(directory: Path) -> str:
    (directory / "private" / "attach").mkdir(parents=True)
    (directory / "private" / "attach" / "sock").write_text("")
    return "private/attach/sock: exists and is no socket"


@pytest.mark.parametrize("spoil", [spoil_owner, spoil_by_link, spoil_socket])
def test_without_the_attach_socket_the_gateway_is_left(
        directory: Path, spoil: Callable[[Path], str]) -> None:
    what = spoil(directory)
    with Broker(directory) as broker:
        status, code, message = error(post(broker, listen=..., attach="inside", lease=True))
        assert (status, code) == (400, "bad_request")
        assert what in message and message.endswith('attach by "gateway"')
        assert what in broker.log
        assert post(broker).status == 201


def test_two_brokers_of_one_directory_have_one_attach_socket(directory: Path, sandbox: Sandbox) -> None:
    (directory / "second").mkdir()
    with Broker(directory) as first:
        with Broker(directory / "second", broker={"control_socket": directory / "other.sock"}) as second:
            assert "another posternd holds it" in error(
                post(second, listen=..., attach="inside", lease=True))[2]
        with attached(first, sandbox):
            assert sandbox.ask().token


def test_its_name_shows_no_path_inside(offline: Broker, sandbox: Sandbox) -> None:
    with Inside(offline) as lease, Door(lease.door["dir"], sandbox), sandbox.entered():
        shown = Path("/proc/thread-self/net/unix").read_text()
    assert re.search(r" sock$", shown, re.M) and str(offline.directory) not in shown


# the way it goes


def test_a_token_is_served_inside(offline: Broker, sandbox: Sandbox) -> None:
    with Inside(offline, label="in") as lease:
        assert set(lease.door) == {"dir", "ticket", "secret"}
        assert Path(lease.door["dir"]) == offline.directory / "private" / "attach"
        assert re.fullmatch(r"[0-9a-f]{32}", lease.door["ticket"])
        assert re.fullmatch(r"[0-9a-f]{32}", lease.door["secret"])
        assert lease.door["ticket"] != lease.door["secret"]
        assert sandbox.is_refused() and lease.client.is_silent()
        with lease.attach(sandbox):
            for host in ("169.254.169.254", "metadata.google.internal", "metadata"):
                assert sandbox.ask(host=host).token
            assert sandbox.ask(where=INSIDE6).token
            assert sandbox.ask(source="127.0.0.1").token
            assert sandbox.ask(host="198.51.100.1").status == 403
            assert get(offline, lease.session).json["counters"] == \
                {"requests": 6, "tokens": 5, "refused": 1}
    closed = closed_with(offline, lease.session)
    assert (closed["label"], closed["requests"], closed["tokens"], closed["refused"]) == ("in", 6, 5, 1)
    line, = offline.audit_of("session.open", session=lease.session["id"])
    assert (line["attach"], line["listen"], line["pin"]) == ("inside", "169.254.169.254:80", None)
    line, = offline.audit_of("session.attach", session=lease.session["id"])
    assert (line["uid"], line["pid"], line["sockets"]) == (0, os.getpid(), 2)
    line, = offline.audit_of("token.serve", session=lease.session["id"], peer="169.254.169.254")


def test_a_sandbox_without_ipv6_has_one_socket(offline: Broker) -> None:
    with Sandbox(ipv6=False) as place, Inside(offline) as lease, lease.attach(place, ipv6=False):
        assert place.ask().token


def test_what_it_says_of_itself(offline: Broker, sandbox: Sandbox) -> None:
    with attached(offline, sandbox) as (lease, _):
        assert {name: lease.session[name] for name in ("attach", "endpoint", "listen", "pin", "peer", "lease")} == {
            "attach": "inside", "endpoint": "169.254.169.254", "listen": "169.254.169.254:80",
            "pin": None, "peer": None, "lease": True}
        values = lease.session["env"]
        for name in ("GCE_METADATA_HOST", "GCE_METADATA_IP", "GCE_METADATA_ROOT", "NO_PROXY", "no_proxy"):
            assert values[name] == "169.254.169.254"
        assert get(offline, lease.session).json == lease.session
        assert listed(offline) == [lease.session]
        assert "door" not in control(offline, SESSIONS).text
        assert "postern_doors 1\n" in offline.control("/metrics").text
        assert error(patch(offline, lease.session, "127.0.0.1"))[:2] == (400, "bad_request")
    eventually("none left", lambda: "postern_doors 0\n" in offline.control("/metrics").text)


@pytest.mark.parametrize("wish", [
    {"lease": ...}, {"lease": False}, {"listen": "127.0.0.1"}, {"pin": "launcher"},
    {"peer": ["127.0.0.1"]}, {"door": {}}, {"door": {"secret": "A" * 32}},
    {"door": {"secret": "a" * 32, "ticket": "a" * 32}}, {"attach": "gateway", "door": {"secret": "a" * 32}}])
def test_what_does_not_go_with_it_is_a_bad_request(offline: Broker, wish: dict[str, object]) -> None:
    status, code, message = error(post(
        offline, **{"listen": ..., "attach": "inside", "lease": True, **wish}))
    assert (status, code) == (400, "bad_request") and message.startswith('"')
    assert not listed(offline)


@pytest.mark.real_time
def test_two_sandboxes_have_two_tokens(broker: Broker, google: Standin) -> None:
    with Sandbox() as one, Sandbox() as two, attached(broker, one), attached(broker, two):
        tokens = {one.ask().token, two.ask().token, one.ask().token}
        assert len(tokens) == 2
    assert google.count("generateAccessToken") == 2


def test_the_limit_of_connections_is_of_both_sockets(start: Starter, sandbox: Sandbox) -> None:
    broker = start(broker={"endpoint_connections": 4})
    with attached(broker, sandbox):
        held = [sandbox.client() for _ in range(2)] + [sandbox.client(INSIDE6) for _ in range(2)]
        for client in held:
            assert client.ask(host="metadata").status == 200
        assert sandbox.ask().status == 503 and sandbox.ask(where=INSIDE6).status == 503
        for client in held:
            client.close()


def test_the_address_inside_is_not_taken_for_one_of_the_brokers_own(start: Starter, sandbox: Sandbox) -> None:
    """On a VM the source may be the machine's metadata server, which has the same address outside."""
    with Namespace() as host:
        broker = start(prefix=host.prefix, source={"type": "metadata"})
        with attached(broker, sandbox):
            assert sandbox.ask().status in (403, 503)
            assert broker.reload()["result"] == "ok"
            assert "mint failed" in broker.log and "endpoint of this broker" not in broker.log


# how it ends


def test_the_end_of_the_door_is_seen_within_100_ms(offline: Broker, sandbox: Sandbox) -> None:
    seen = []
    for _ in range(10):
        with Inside(offline) as lease:
            door = lease.attach(sandbox)
            kept = [each.dup() for each in door.sockets]  # what a broker must close is its own alone
            begun = time.monotonic()
            door.sock.close()
            eventually("closed", sandbox.is_refused, 1)
            seen.append(time.monotonic() - begun)
            assert lease.is_over() and closed_with(offline, lease.session)["reason"] == "door_gone"
            for each in kept + door.sockets:
                each.close()
    # One of ten may have met a machine that was busy elsewhere.
    assert sorted(seen)[-2] < SEEN_S, seen


def test_the_end_of_the_lease_is_told_within_100_ms(offline: Broker, sandbox: Sandbox) -> None:
    seen = []
    for _ in range(10):
        lease = Inside(offline)
        with lease.attach(sandbox) as door:
            begun = time.monotonic()
            lease.client.close()
            assert door.hear() == "end"
            seen.append(time.monotonic() - begun)
            assert door.hear() == "" and sandbox.is_refused()
        assert closed_with(offline, lease.session)["reason"] == "lease"
    assert sorted(seen)[-2] < SEEN_S, seen


@pytest.mark.parametrize("how", ["delete", "expiry"])
def test_the_end_of_the_session_is_told(offline: Broker, sandbox: Sandbox, how: str) -> None:
    with attached(offline, sandbox, ttl_s=1 if how == "expiry" else 60) as (lease, door):
        if how == "delete":
            assert delete(offline, lease.session).status == 204
            assert sandbox.is_refused()
        assert (door.hear(), door.hear()) == ("end", "")
        assert sandbox.is_refused() and lease.is_over()
        assert closed_with(offline, lease.session)["reason"] == \
            ("expired" if how == "expiry" else "deleted")


def test_a_stop_of_the_broker_is_no_end(start: Starter, sandbox: Sandbox) -> None:
    """The door offers itself to the next one, and holds the queue until then."""
    broker = start()
    with attached(broker, sandbox) as (lease, door):
        waiting = Inside(broker)
        assert broker.stop() == 0
        assert door.hear() == "" and lease.is_over()
        assert waiting.error()[0] == "shutting_down"
        waiting.client.close()
        assert not sandbox.is_refused()
    assert sandbox.is_refused()


@pytest.mark.real_time
def test_requests_under_way_are_answered_when_the_broker_stops(
        start: Starter, google: Standin, sandbox: Sandbox) -> None:
    broker = start(google)
    with attached(broker, sandbox) as (_, door), sandbox.client() as client:
        google.hold("generateAccessToken")
        client.send(b"GET %s HTTP/1.1\r\nHost: metadata\r\nMetadata-Flavor: Google\r\n\r\n"
                    % TOKEN.encode())
        google.wait_for("generateAccessToken", 1)
        broker.process.terminate()
        eventually("draining", lambda: "stopping: " in broker.log)
        google.release("generateAccessToken")
        assert client.read().token
        assert door.hear() == ""
        assert broker.wait() == 0


def test_a_reload_keeps_it_or_ends_it(start: Starter, sandbox: Sandbox) -> None:
    broker = start()
    with attached(broker, sandbox) as (lease, door):
        assert broker.reload()["result"] == "ok"
        assert sandbox.ask().token
        broker.configure(profiles={"other": {}})
        assert broker.reload()["result"] == "ok"
        assert door.hear() == "end" and lease.is_over()
        assert closed_with(broker, lease.session)["reason"] == "profile_gone"


# a broker that comes again


def test_a_killed_broker_is_followed_by_another(start: Starter, sandbox: Sandbox) -> None:
    broker = start()
    lease = Inside(broker)
    door = lease.attach(sandbox)
    secret, directory = lease.door["secret"], lease.door["dir"]
    assert sandbox.ask().token
    broker.kill()
    assert door.hear() == ""
    waiting = sandbox.client()  # the kernel still takes connections
    waiting.send(b"GET / HTTP/1.1\r\nHost: metadata\r\nMetadata-Flavor: Google\r\n\r\n")
    broker.start()
    with Door(directory, sandbox) as early:
        early.say(f"R {secret}")
        assert early.hear() == ""  # not known yet: it tries again
    with Inside(broker, door={"secret": secret}) as again:
        assert again.door == {"dir": directory, "secret": secret}
        assert error(post(broker, listen=..., attach="inside", lease=True,
                          door={"secret": secret}))[:2] == (409, "conflict")
        with Door(directory, sandbox) as late:
            late.say(f"R {secret}")
            assert late.hear() == "go"
            assert late.offer(door.sockets) == f"ok {secret}"
            assert again.event() == {"event": "attached"}
            assert waiting.read().status == 200 and sandbox.ask().token
            with Door(directory, sandbox) as second:
                second.say(f"R {secret}")
                assert second.hear() == "no the session does not wait for its door"
            assert sandbox.ask().token
    waiting.close()
    lease.client.close()


def test_no_ticket_opens_a_session_that_waits_for_its_old_door(offline: Broker, sandbox: Sandbox) -> None:
    secret = "0123456789abcdef" * 2
    with Inside(offline, door={"secret": secret}) as lease, Door(lease.door["dir"], sandbox) as door:
        door.say(f"T {secret}")
        assert door.hear().startswith("no the ticket is unknown")
    closed_with(offline, lease.session)


def test_a_secret_is_no_way_in_for_a_new_door(offline: Broker, sandbox: Sandbox) -> None:
    with Inside(offline) as lease:
        with Door(lease.door["dir"], sandbox) as door:
            door.say(f"R {lease.door['secret']}")
            assert door.hear() == "no the session does not wait for its door"
        with lease.attach(sandbox):  # no harm was done
            assert sandbox.ask().token


# what it costs


def test_descriptors_are_given_back(offline: Broker, sandbox: Sandbox) -> None:
    with flat_descriptors(offline):
        for _ in range(20):
            with attached(offline, sandbox):
                assert sandbox.ask().status == 200


def test_keys_are_nowhere(start: Starter, sandbox: Sandbox) -> None:
    broker = start()
    with attached(broker, sandbox) as (lease, _):
        keys = [lease.door["ticket"], lease.door["secret"]]
        leaks.note(keys)
    assert broker.stop() == 0
    assert not leaks.find(broker.directory, keys)
