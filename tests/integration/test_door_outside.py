# SPDX-License-Identifier: Apache-2.0
"""The real metadata servers, played by a stand-in behind the forwarding of the engine's host: whether a sandbox
gets at them past its own. Answers are looked at inside, packets are counted outside."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence

import pytest

from .broker import ROOT as ROOT_FOLDER
from .attacked import broker, outside  # noqa: F401 - fixtures
from .broker import Broker
from .deadline import allowed
from .engine import IMAGE, Engine
from .outside import ANSWER, CREDENTIALS, METADATA_V4, METADATA_V6, V4, V6, Outside
from .sandboxes import AGENT, ROOT, USER, Container, Sandbox, network

# Two of IPv4 behind 169.254.169.254: one in its range, one alone.
TO_V4, TO_V6 = [METADATA_V4, "169.254.170.2", "168.63.129.16"], [METADATA_V6, "fd00:ec2::254"]


@pytest.fixture(scope="module")
def bridge(engine: Engine, outside: Outside) -> Iterator[str]:
    """One with both families."""
    with network(engine, "outside0", 2) as name:
        yield name


@pytest.fixture(scope="module")
def sandbox(engine: Engine, broker: Broker, bridge: str) -> Iterator[Sandbox]:
    """One whose resolver is the metadata server, as on Google's machines."""
    with Sandbox(engine, broker, "--network", bridge, "--dns", METADATA_V4) as made:
        yield made


def reach(container: Container, settings: dict[str, object], who: str, to_v4: Sequence[str] = TO_V4,
          to_v6: Sequence[str] = TO_V6) -> dict[str, str]:
    """What came of every try."""
    found: dict[str, str] = container.python("attack_reach.py", json.dumps({
        "v4": settings["IPAddress"], "v6": settings["GlobalIPv6Address"], "to_v4": to_v4, "to_v6": to_v6,
        "patience_s": allowed(2.5)}), who=who)
    return found


def test_without_a_door_they_are_reached(engine: Engine, outside: Outside, bridge: str) -> None:
    """So that what is not reached with one says something."""
    with Container(engine, "--network", bridge, "--user", "1000:1000", *AGENT, IMAGE, "sleep", "600") as control:
        found = reach(control, control.network(), USER)
    reached = [name for name, said in found.items() if CREDENTIALS in said]
    for to in TO_V4 + TO_V6:
        for way in ("plain", "device", "device source", "source", "unicast"):
            assert f"tcp {way} {to} 80" in reached, (way, to, found[f"tcp {way} {to} 80"])
        assert f"udp device {to} 80" in reached
    assert outside.seen()[f"{METADATA_V4} 6 80"] > 10


@pytest.mark.parametrize("who", [USER, ROOT])
def test_nothing_but_dns_gets_out(outside: Outside, sandbox: Sandbox, who: str) -> None:
    outside.forget()
    found = reach(sandbox.agent, sandbox.door.network(), who)
    assert len(found) > 150 and not [name for name, said in found.items() if CREDENTIALS in said]
    assert outside.seen(but_dns_of=[METADATA_V4]) == {}
    # What ends at the local address is the endpoint's, which serves none but the local addresses.
    for to in (METADATA_V4, METADATA_V6):
        assert "Metadata-Flavor: Google" in found[f"tcp plain {to} 80"]
        assert found[f"tcp plain {to} 443"] == "ECONNREFUSED"
    # Closed before or behind the request.
    assert found[f"tcp source {METADATA_V4} 80"] in ("", "ECONNRESET", "EPIPE")


@pytest.mark.parametrize("who", [USER, ROOT])
def test_nothing_but_dns_gets_out_where_arp_is_answered(
        outside: Outside, sandbox: Sandbox, bridge: str, who: str) -> None:
    """By the bridge, as a colluding neighbour could: a rule that prohibits does not hold for a socket that is
    bound to a device then."""
    outside.host_setting(f"ipv4/conf/{bridge}/proxy_arp", "1")
    outside.host_setting(f"ipv4/neigh/{bridge}/proxy_delay", "0")
    outside.forget()
    try:
        found = reach(sandbox.agent, sandbox.door.network(), who)
        assert answers(sandbox.agent, METADATA_V4) == {METADATA_V4: [ANSWER, ANSWER]}
    finally:
        outside.host_setting(f"ipv4/conf/{bridge}/proxy_arp", "0")
        sandbox.door.run("ip", "neigh", "flush", "all")
    assert not [name for name, said in found.items() if CREDENTIALS in said]
    assert outside.seen(but_dns_of=[METADATA_V4]) == {}


def answers(container: Container, *servers: str) -> dict[str, list[str]]:
    """What they say, by UDP and by TCP."""
    found: dict[str, list[str]] = container.python("ask_dns.py", *servers, who=USER)
    return found


def test_a_resolver_at_the_metadata_address_resolves(outside: Outside, sandbox: Sandbox) -> None:
    outside.forget()
    assert "nameserver 127.0.0.11" in sandbox.agent.sh("cat /etc/resolv.conf").stdout
    assert answers(sandbox.agent, "127.0.0.11", METADATA_V4) == {
        "127.0.0.11": [ANSWER, ANSWER], METADATA_V4: [ANSWER, ANSWER]}
    assert ANSWER in sandbox.agent.sh("nslookup a.name.test").stdout
    assert outside.seen(but_dns_of=[METADATA_V4]) == {}
    seen = outside.seen()
    assert seen[f"{METADATA_V4} 17 53"] >= 2 and seen[f"{METADATA_V4} 6 53"] >= 2


def test_without_ipv6_and_on_the_default_bridge_it_does_too(engine: Engine, broker: Broker, outside: Outside) -> None:
    with Sandbox(engine, broker, "--dns", METADATA_V4) as sandbox:
        assert f"nameserver {METADATA_V4}" in sandbox.agent.sh("cat /etc/resolv.conf").stdout
        assert answers(sandbox.agent, METADATA_V4) == {METADATA_V4: [ANSWER, ANSWER]}


def test_further_resolvers_are_open_for_dns_alone(
        engine: Engine, broker: Broker, outside: Outside, bridge: str) -> None:
    further = ["168.63.129.16", "169.254.169.253", "fd00:ec2::253"]
    arguments = [word for each in further for word in ("--dns", each)]
    shut = [each for each in V4 + V6 if each not in (*further, METADATA_V4, METADATA_V6)]
    with Sandbox(engine, broker, "--network", bridge, arguments=arguments) as sandbox:
        outside.forget()
        found = answers(sandbox.agent, *further, *shut)
        assert {each: found[each] for each in further} == {each: [ANSWER, ANSWER] for each in further}
        assert {each: found[each] for each in shut} == {each: ["PermissionError"] * 2 for each in shut}
        reached = reach(sandbox.agent, sandbox.door.network(), USER, further[:2], further[2:])
        assert not [name for name, said in reached.items() if CREDENTIALS in said]
        # Of IPv6 the kernel sends a datagram of a connected socket by the route that it has looked up for
        # the first port. It says nothing there: what is served is served by TCP.
        assert set(outside.seen(but_dns_of=further)) <= {"fd00:ec2::253 17 80"}


def test_frames_need_net_raw_and_the_host_can_stop_them(
        engine: Engine, outside: Outside, sandbox: Sandbox, bridge: str) -> None:
    """Nothing inside is asked about a frame that a packet socket sends to the gateway. Hence no agent has NET_RAW,
    and the host's own rules are still worth having."""
    def sent(who: str) -> dict[str, int]:
        outside.forget()
        mine = sandbox.door.network()
        link, = json.loads(subprocess.run([*engine.namespace.prefix, "ip", "-json", "link", "show", bridge],
                                          check=True, capture_output=True, text=True).stdout)
        sandbox.agent.python("attack_frames.py", json.dumps({
            "mac": link["address"], "v4": mine["Gateway"], "v6": mine["IPv6Gateway"], "own_v4": mine["IPAddress"],
            "own_v6": mine["GlobalIPv6Address"], "open": 1}), who=who)
        # Not the host's own ICMP errors, to those that the frames name as their sender.
        return {what: count for what, count in outside.seen(but_dns_of=[METADATA_V4, METADATA_V6]).items()
                if what.split()[0] in (METADATA_V4, METADATA_V6) and what.split()[1] in ("6", "17")}

    with pytest.raises(AssertionError, match="Operation not permitted"):
        sent(USER)
    assert sent(ROOT).keys() >= {f"{METADATA_V4} 6 80", f"{METADATA_V6} 6 80"}
    rules = [*engine.namespace.prefix, ROOT_FOLDER / "scripts" / "host-firewall"]
    subprocess.run([*rules, "install", "--no-endpoint", "--no-timer"], check=True, capture_output=True)
    try:
        assert sent(ROOT) == {}
        assert answers(sandbox.agent, METADATA_V4) == {METADATA_V4: [ANSWER, ANSWER]}
    finally:
        subprocess.run([*rules, "remove", "--no-timer"], check=True, capture_output=True)
