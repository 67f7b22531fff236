# SPDX-License-Identifier: Apache-2.0
"""Who else is on this machine: a neighbour on the sandbox's bridge, the host, a container on another bridge.
None gets an answer from the endpoint, and the sandbox forwards for none."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .attacked import broker, outside  # noqa: F401 - fixtures
from .broker import Broker
from .deadline import allowed
from .engine import IMAGE, Engine
from .outside import CREDENTIALS, METADATA_V4, METADATA_V6, Outside
from .sandboxes import ROOT, Container, Sandbox, network

OPEN = 8080
CURL = ["curl", "-sS", "--noproxy", "*", "--max-time", "1", "-H", "Metadata-Flavor: Google"]
TOKEN = "computeMetadata/v1/instance/service-accounts/default/token"
TCP_SYN_ACK = "tcp 0x12"


@pytest.fixture(scope="module")
def bridge(engine: Engine, outside: Outside) -> Iterator[str]:
    """One with both families."""
    with network(engine, "near0", 3) as name:
        yield name


@pytest.fixture(scope="module")
def sandbox(engine: Engine, broker: Broker, bridge: str) -> Iterator[Sandbox]:
    """One that has served a token, and listens on another port. It forwards, as where the host does: a new
    namespace begins with the settings of the first one."""
    with Sandbox(engine, broker, "--network", bridge) as made:
        with made.agent.entered():
            for name in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
                Path("/proc/sys/net", name).write_text("1")
        with made.agent.entered(), socket.create_server(("::", OPEN), family=socket.AF_INET6, dualstack_ipv6=True):
            patient = [*CURL, "--max-time", str(allowed(10))]
            assert "access_token" in made.agent.run(*patient, f"http://{METADATA_V4}/{TOKEN}").stdout
            yield made


@pytest.fixture(scope="module")
def neighbour(engine: Engine, bridge: str) -> Iterator[Container]:
    """On the same bridge, as engines start them."""
    with Container(engine, "--network", bridge, IMAGE, "sleep", "600") as made:
        yield made


def asked(prefix: list[str], *urls: str) -> list[str]:
    """What curl gets from there, one at a time: "", where nothing."""
    return [subprocess.run([*prefix, *CURL, url], capture_output=True, text=True, check=False,
                           timeout=allowed(20)).stdout for url in urls]


def assert_reaches_the_stand_in(prefix: list[str]) -> None:
    """Without a route of a test's own: the same question from there is answered, by who has no token."""
    assert asked(prefix, *ENDPOINTS) == [CREDENTIALS] * len(ENDPOINTS)


ENDPOINTS = [f"http://{METADATA_V4}/{TOKEN}", f"http://[{METADATA_V6}]/{TOKEN}"]


def test_raw_frames_of_a_neighbour_are_answered_with_nothing(
        sandbox: Sandbox, neighbour: Container, outside: Outside) -> None:
    before = sandbox.counters()
    outside.forget()
    theirs, mine = sandbox.door.network(), neighbour.network()
    answers = neighbour.python("attack_frames.py", json.dumps({
        "mac": theirs["MacAddress"], "v4": theirs["IPAddress"], "v6": theirs["GlobalIPv6Address"],
        "own_v4": mine["IPAddress"], "own_v6": mine["GlobalIPv6Address"], "open": OPEN}), who=ROOT)
    controls = {kind: said for kind, said in answers.items() if kind.startswith("control")}
    assert len(controls) == 2 and all(TCP_SYN_ACK in " ".join(said) for said in controls.values()), answers
    for kind in set(answers) - set(controls):
        # A reset or an unreachable port, or nothing.
        assert all(" tcp 0x14" in each or " tcp 0x04" in each or " icmp 3 " in each or " icmp 1 " in each
                   for each in answers[kind]), (kind, answers[kind])
    assert sandbox.counters() == before
    # Nor has the sandbox forwarded one of them.
    assert outside.seen() == {}


def test_a_neighbour_s_routes_lead_nowhere(sandbox: Sandbox, neighbour: Container, outside: Outside) -> None:
    """By way of the sandbox; and on the link, where it must not answer ARP."""
    before = sandbox.counters()
    theirs = sandbox.door.network()
    outside.forget()
    neighbour.run("ip", "route", "add", METADATA_V4, "via", theirs["IPAddress"])
    neighbour.run("ip", "-6", "route", "add", METADATA_V6, "via", theirs["GlobalIPv6Address"])
    try:
        assert asked(neighbour.net, *ENDPOINTS, f"http://{METADATA_V4}:53/", f"http://{theirs['IPAddress']}/{TOKEN}",
                     f"http://[{theirs['GlobalIPv6Address']}]/{TOKEN}") == [""] * 5
        found = neighbour.python("ask_dns.py", METADATA_V4, METADATA_V6)
        assert not [said for pair in found.values() for said in pair if said[0].isdigit()], found
        for family, to in (("-4", METADATA_V4), ("-6", METADATA_V6)):
            neighbour.run("ip", family, "route", "replace", to, "dev", "eth0")
        assert asked(neighbour.net, *ENDPOINTS) == [""] * 2
        shown = neighbour.run("ip", "neigh", "show", METADATA_V4).stdout
        assert theirs["MacAddress"] not in shown, shown
    finally:
        for family, to in (("-4", METADATA_V4), ("-6", METADATA_V6)):
            neighbour.run("ip", family, "route", "delete", to, check=False)
    assert sandbox.counters() == before
    assert outside.seen() == {}
    assert_reaches_the_stand_in(neighbour.net)


def test_the_host_gets_nothing_by_a_route(engine: Engine, sandbox: Sandbox, outside: Outside, bridge: str) -> None:
    before = sandbox.counters()
    theirs = sandbox.door.network()
    ways = [(METADATA_V4, "10.77.0.2", theirs["IPAddress"]), (METADATA_V6, "fd00:77::2", theirs["GlobalIPv6Address"])]
    outside.host(*(f"route replace {to} via {way}" for to, _, way in ways))
    try:
        assert asked(engine.namespace.prefix, *ENDPOINTS, f"http://{theirs['IPAddress']}/{TOKEN}") == [""] * 3
        outside.host(*(f"route replace {to} dev {bridge}" for to, _, _ in ways))
        assert asked(engine.namespace.prefix, *ENDPOINTS) == [""] * 2
    finally:
        outside.host(*(f"route replace {to} via {usual}" for to, usual, _ in ways))
    assert_reaches_the_stand_in(engine.namespace.prefix)
    assert sandbox.counters() == before


def test_another_bridge_gets_nothing(engine: Engine, sandbox: Sandbox) -> None:
    before = sandbox.counters()
    theirs = sandbox.door.network()
    with network(engine, "far0", 4) as other, Container(engine, "--network", other, IMAGE, "sleep", "600") as far:
        gateway = far.network()["Gateway"]
        far.run("ip", "route", "add", theirs["IPAddress"], "via", gateway)
        said = asked(far.net, f"http://{theirs['IPAddress']}/{TOKEN}", f"http://[{theirs['GlobalIPv6Address']}]/{TOKEN}")
        assert said == [""] * 2
        assert_reaches_the_stand_in(far.net)
    assert sandbox.counters() == before
