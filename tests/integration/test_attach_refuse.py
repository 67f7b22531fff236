# SPDX-License-Identifier: Apache-2.0
"""The attach socket refuses what is no door, and a door that is not what it must be; neither harms it."""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import tempfile
from collections.abc import Callable, Sequence

import pytest

from . import procfs
from .attaching import sandbox, unharmed  # noqa: F401 - fixtures
from .broker import Broker
from .deadline import eventually
from .doors import INSIDE, INSIDE6, Door, Inside, Sandbox, attached
from .http1 import Client
from .namespaces import Namespace, needs_namespaces
from .sessions import closed_with

pytestmark = [needs_namespaces, pytest.mark.usefixtures("unharmed")]

Offer = Callable[[Sandbox, contextlib.ExitStack], Sequence[socket.socket | int]]


def refused(lease: Inside, door: Door, broker: Broker) -> str:
    """Why: the door hears it, the launcher too, and the session is over."""
    said = door.hear()
    assert said.startswith("no ") and len(said) <= 203 and said.isprintable()
    assert door.hear() == ""
    code, message = lease.error()
    assert code == "forbidden" and message == f"the door was refused: {said[3:]}"
    assert closed_with(broker, lease.session)["reason"] == "door_refused"
    return said[3:]


# who comes


@pytest.mark.parametrize("text", [
    b"T", b"T ", b"T  ", b"D", b"R", b"end", b"go", b"T " + b"g" * 32, b"T " + b"A" * 32,
    b"T " + b"a" * 31, b"T " + b"a" * 33, b"T " + b"a" * 31 + b"\0", b"R " + b"a" * 31 + b"\n", b"\0", b"\xff" * 256,
    b"x" * 257, json.dumps({"ticket": "a" * 32, "more": ["x" * 100] * 640}).encode()],
    ids=lambda text: f"{len(text)}-{text[:4]!r}")
def test_what_is_no_message_is_closed(offline: Broker, text: bytes) -> None:
    with Inside(offline) as lease, Door(lease.door["dir"]) as door:
        door.say(text)
        assert door.hear() == ""
        assert lease.client.is_silent()


def test_a_ticket_behind_64_kib_is_none(offline: Broker, sandbox: Sandbox) -> None:
    with Inside(offline) as lease, Door(lease.door["dir"], sandbox) as door:
        door.say(f"T {lease.door['ticket']}".encode() + b" " * 65536)
        assert door.hear() == ""
        with lease.attach(sandbox):
            assert sandbox.ask().token


def test_a_wrong_ticket_is_refused(offline: Broker, sandbox: Sandbox) -> None:
    with Inside(offline) as lease, Door(lease.door["dir"], sandbox) as door:
        for key in ("0" * 32, lease.door["secret"]):
            with Door(lease.door["dir"], sandbox) as other:
                other.say(f"T {key}")
                assert (other.hear(), other.hear()) == ("no the ticket is unknown, used, or older than 60 s", "")
        assert offline.wait_for_audit("attach.refuse", reason="ticket", peer="uid 0", session=None)
        door.is_let_in(lease.door["ticket"])


def test_a_ticket_is_good_once(offline: Broker, sandbox: Sandbox) -> None:
    with attached(offline, sandbox) as (lease, _), Door(lease.door["dir"], sandbox) as second:
        second.say(f"T {lease.door['ticket']}")
        assert second.hear().startswith("no the ticket is unknown, used")
        assert sandbox.ask().token


def test_a_ticket_ends_with_its_session(offline: Broker, sandbox: Sandbox) -> None:
    with Inside(offline, ttl_s=1) as lease:
        assert lease.error() == ("conflict", "the session ended before its door was there")
        with Door(lease.door["dir"], sandbox) as door:
            door.say(f"T {lease.door['ticket']}")
            assert door.hear().startswith("no the ticket is unknown")


def test_a_door_in_the_brokers_namespace_is_refused_before_it_begins(offline: Broker) -> None:
    with Inside(offline) as lease, Door(lease.door["dir"]) as door:
        door.say(f"T {lease.door['ticket']}")
        assert refused(lease, door, offline) == "the door is in the host's own network namespace"


def test_a_second_door_of_a_namespace_is_refused_before_it_begins(offline: Broker, sandbox: Sandbox) -> None:
    with attached(offline, sandbox), Inside(offline) as lease, Door(lease.door["dir"], sandbox) as door:
        door.say(f"T {lease.door['ticket']}")
        assert refused(lease, door, offline) == "another session has a door in this network namespace"
        assert sandbox.ask().token


def test_two_doors_that_come_at_once_are_one(offline: Broker, sandbox: Sandbox) -> None:
    with Inside(offline) as one, Inside(offline) as two:
        with Door(one.door["dir"], sandbox) as first, Door(two.door["dir"], sandbox) as second:
            first.is_let_in(one.door["ticket"])
            second.say(f"T {two.door['ticket']}")
            assert "another session" in refused(two, second, offline)


def test_a_door_that_ends_before_it_is_set_up_ends_its_session(offline: Broker, sandbox: Sandbox) -> None:
    with Inside(offline) as lease:
        with Door(lease.door["dir"], sandbox) as door:
            door.is_let_in(lease.door["ticket"])
        assert lease.error() == ("conflict", "the door ended before its set-up was done")
        assert closed_with(offline, lease.session)["reason"] == "door_gone"


@pytest.mark.real_time
def test_a_door_has_5_s_for_each_message(offline: Broker, sandbox: Sandbox) -> None:
    with Inside(offline) as lease, Door(lease.door["dir"], sandbox) as door, Door(lease.door["dir"]) as silent:
        door.is_let_in(lease.door["ticket"])
        assert silent.hear() == "no the next message did not come within 5 s"
        assert refused(lease, door, offline) == "the next message did not come within 5 s"


@pytest.mark.parametrize("text", ["D", "T " + "a" * 32, "x"])
def test_an_attached_door_has_nothing_more_to_say(offline: Broker, sandbox: Sandbox, text: str) -> None:
    with attached(offline, sandbox) as (lease, door):
        door.say(text, door.sockets)
        assert door.hear() == "" and lease.is_over()
        assert sandbox.is_refused()
        assert closed_with(offline, lease.session)["reason"] == "door_refused"


# what it brings


def a_file(_: Sandbox, stack: contextlib.ExitStack) -> list[int]:
    return [stack.enter_context(tempfile.TemporaryFile()).fileno()]


def of_another(place: Sandbox, stack: contextlib.ExitStack) -> list[socket.socket]:
    """Of a namespace that no session has."""
    assert place
    return [stack.enter_context(Sandbox()).listener()]


def of_the_host(_: Sandbox, __: contextlib.ExitStack) -> list[socket.socket]:
    """Listens on loopback where the broker is."""
    made = socket.create_server(("127.0.0.1", 0))
    made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
    return [made]


def a_udp_socket(place: Sandbox, _: contextlib.ExitStack) -> list[socket.socket]:
    with place.entered():
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
    made.bind(INSIDE)
    return [made]


def an_mptcp_socket(place: Sandbox, _: contextlib.ExitStack) -> list[socket.socket]:
    with place.entered():
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
    made.bind(INSIDE)
    made.listen()
    return [made]


def a_renamed_device(place: Sandbox, _: contextlib.ExitStack) -> list[socket.socket]:
    """Bound to a device that has taken the name of loopback."""
    place.ip("link add v0 type veth peer name v1", "link set lo down", "link set lo name lo0", "link set v0 name lo",
             "link set lo0 up", "addr replace 169.254.169.254/32 dev lo0")
    return [place.listener()]


def a_pair(*_: object) -> list[socket.socket]:
    return [socket.socketpair()[0]]


OFFERS: dict[str, tuple[Offer, str]] = {
    "none": (lambda place, stack: [], "fewer than 1 sockets came"),
    "three": (lambda place, stack: [place.listener(), place.listener(INSIDE6), place.listener(("127.0.0.1", 80))],
              "more than 2 sockets came"),
    "five": (lambda place, stack: [place.listener(("127.0.0.1", port)) for port in range(80, 85)],
             "more than 2 sockets came"),
    "253": (lambda place, stack: [place.listener()] * 253, "more than 2 sockets came"),
    "a file": (a_file, "socket 1: is no socket"),
    "no TCP": (a_pair, "socket 1: is no TCP socket of IPv4"),
    "UDP": (a_udp_socket, "socket 1: is no TCP socket of IPv4"),
    "IPv6 first": (lambda place, stack: [place.listener(INSIDE6)], "socket 1: is no TCP socket of IPv4"),
    "the same twice": (lambda place, stack: [place.listener()] * 2, "socket 2: is no TCP socket of IPv6"),
    "another port": (lambda place, stack: [place.listener(("169.254.169.254", 8080))],
                     "socket 1: is not bound to 169.254.169.254:80"),
    "another address": (lambda place, stack: [place.listener(("127.0.0.1", 80))],
                        "socket 1: is not bound to 169.254.169.254:80"),
    "every address": (lambda place, stack: [place.listener(("0.0.0.0", 80))],
                      "socket 1: is not bound to 169.254.169.254:80"),
    "another IPv6 address": (lambda place, stack: [place.listener(), place.listener(("::1", 80))],
                             "socket 2: is not bound to [fd20:ce::254]:80"),
    "no device": (lambda place, stack: [place.listener(device=None)], "socket 1: is not bound to the device lo"),
    "no device for IPv6": (lambda place, stack: [place.listener(), place.listener(INSIDE6, device=None)],
                           "socket 2: is not bound to the device lo"),
    "a device named lo": (a_renamed_device, "socket 1: is not bound to the device lo"),
    "a shared port": (lambda place, stack: [place.listener(reuse_port=True)],
                      "socket 1: shares its port (SO_REUSEPORT)"),
    "deaf": (lambda place, stack: [place.listener(listening=False)], "socket 1: does not listen"),
    "of the host": (of_the_host, "socket 1: is not bound to 169.254.169.254:80"),
    "of another namespace": (of_another, "socket 1: is of another network namespace than its sender"),
}


@pytest.mark.parametrize("name", OFFERS)
def test_what_is_not_the_socket_of_a_door_is_refused(offline: Broker, name: str) -> None:
    make, why = OFFERS[name]
    with Sandbox() as place, contextlib.ExitStack() as stack, Inside(offline) as lease:
        with Door(lease.door["dir"], place) as door:
            door.is_let_in(lease.door["ticket"])
            sockets = make(place, stack)
            door.say("D", sockets)
            assert refused(lease, door, offline) == why
            for each in sockets:
                if isinstance(each, socket.socket):
                    each.close()
            assert place.is_refused()


def test_the_sockets_of_another_session_are_refused(offline: Broker, sandbox: Sandbox) -> None:
    with attached(offline, sandbox) as (_, owner), Sandbox() as place, Inside(offline) as lease:
        with Door(lease.door["dir"], place) as door:
            door.is_let_in(lease.door["ticket"])
            door.say("D", owner.sockets)
            assert refused(lease, door, offline) == "socket 1: is of another network namespace than its sender"
        assert sandbox.ask().token


def test_descriptors_of_a_stranger_are_dropped(offline: Broker, sandbox: Sandbox) -> None:
    with Inside(offline) as lease, sandbox.listener() as listener:
        for text in (f"T {lease.door['ticket']}", f"T {'0' * 32}", "D"):
            with Door(lease.door["dir"], sandbox) as door:
                door.say(text, [listener] * 100)
                assert door.hear() == ""


def test_a_re_offer_is_checked_like_a_first_one(offline: Broker, sandbox: Sandbox) -> None:
    secret = "fedcba9876543210" * 2
    with Inside(offline, door={"secret": secret}) as lease, Door(lease.door["dir"]) as door:
        door.say(f"R {secret}")
        assert refused(lease, door, offline) == "the door is in the host's own network namespace"
    with Inside(offline, door={"secret": secret}) as lease, Door(lease.door["dir"], sandbox) as door:
        door.say(f"R {secret}")
        assert door.hear() == "go"
        door.say("D", [sandbox.listener(device=None)])
        assert "device lo" in refused(lease, door, offline)


# how many


def test_10000_connections_harm_nobody(offline: Broker, sandbox: Sandbox) -> None:
    most, doors = 0, []
    with Inside(offline) as lease, contextlib.ExitStack() as stack:
        stack.callback(lambda: [door.close() for door in doors])
        for i in range(10_000):
            doors.append(Door(lease.door["dir"], None))
            if i % 500 == 499:
                most = max(most, len(procfs.descriptors(offline.pid)))
                assert offline.control("/healthz").status == 200
                for door in doors[:-64]:
                    door.close()
                del doors[:-64]
        assert most < 256
        with lease.attach(sandbox):  # among the last of them
            assert sandbox.ask().token
    lines = offline.audit_of("attach.refuse", reason="crowd")
    assert lines and len(lines) < 60


def test_10000_open_connections_are_64_for_the_broker(offline: Broker, sandbox: Sandbox) -> None:
    count = min(10_000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200)
    with Inside(offline) as lease, contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(Door(lease.door["dir"]))
        eventually("the rest is closed", lambda: len(procfs.descriptors(offline.pid)) < 128)
        with lease.attach(sandbox):
            assert sandbox.ask().token


# from elsewhere


def test_who_is_not_of_the_namespace_is_closed_and_on_record(offline: Broker) -> None:
    """The second wall behind the device that the socket is bound to: here the loopback interface itself
    brings a peer with another address."""
    with Sandbox() as place:
        place.ip("addr add 10.9.8.7/32 dev lo")
        with attached(offline, place) as (lease, _):
            for _ in range(3):
                client = place.client(source="10.9.8.7")
                with contextlib.suppress(OSError):
                    client.send(b"GET / HTTP/1.1\r\nHost: metadata\r\nMetadata-Flavor: Google\r\n\r\n")
                assert client.rest() == b""
                client.close()
            line = offline.wait_for_audit("request.refuse", session=lease.session["id"], reason="foreign")
            assert (line["peer"], line["count"]) == ("10.9.8.7", 1)
            assert place.ask().token
        assert closed_with(offline, lease.session)["refused"] == 3
        assert 'postern_refused_total{profile="vertex",reason="foreign"}' in offline.control("/metrics").text


def test_a_neighbour_reaches_nothing(offline: Broker) -> None:
    with Sandbox() as place, Namespace() as neighbour:
        place.ip(f"link add eth0 type veth peer name eth0 netns {neighbour.path}", "addr add 10.9.0.2/24 dev eth0",
                 "link set eth0 up")
        neighbour.ip("addr add 10.9.0.3/24 dev eth0", "link set eth0 up", "route add 169.254.169.254/32 via 10.9.0.2")
        with attached(offline, place) as (lease, _):
            with neighbour.entered(), pytest.raises(ConnectionRefusedError):
                Client(INSIDE)
            assert place.ask().token
        assert closed_with(offline, lease.session)["refused"] == 0
