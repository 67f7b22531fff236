# SPDX-License-Identifier: Apache-2.0
"""Sessions on a bridge, in network namespaces that reach nothing: allow_peers = auto, pins, IPv6,
addresses that come later."""

from __future__ import annotations

import resource
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .broker import Broker
from .conftest import new_directory
from .deadline import eventually
from .http1 import TOKEN, Client, Reply, request
from .namespaces import Host, Namespace, needs_namespaces
from .sessions import Session, address, delete, error, get, leased, opened, patch, post

pytestmark = needs_namespaces

HERE, HERE6 = "172.30.0.1", "fd00:30::1"


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    """A host with a bridge, and two containers at it."""
    with Host() as made:
        yield made


@pytest.fixture(scope="module")
def containers(host: Host) -> list[Namespace]:
    """172.30.0.2 and 172.30.0.3."""
    return [host.container(2), host.container(3)]


@pytest.fixture(scope="module")
def inside(artifacts: Path, host: Host, containers: list[Namespace]) -> Iterator[Broker]:
    """A broker on the host."""
    assert containers
    with Broker(new_directory(artifacts, "bridges"), prefix=host.prefix,
                broker={"session_listen": HERE, "endpoint_rate": 0},
                profiles={"vertex": {"listen": f"{HERE}:8174"}}) as running:
        yield running


def ask_from(place: Namespace, where: tuple[str, int], target: str = TOKEN, *,
             host: str = "host.docker.internal") -> Reply:
    """One request from there."""
    with place.entered(), Client(where) as client:
        return client.ask(target, host=host)


def open_there(broker: Broker, **wish: object) -> Session:
    """A session at the configured place."""
    return opened(broker, **{"listen": ..., **wish})


def test_a_container_is_served_and_pinned(inside: Broker, containers: list[Namespace]) -> None:
    session = open_there(inside)
    where = address(session)
    assert session["listen"].startswith(f"{HERE}:")
    assert session["endpoint"] == f"host.docker.internal:{where[1]}"
    assert session["env"]["NO_PROXY"] == "host.docker.internal"
    assert ask_from(containers[0], where, host=session["endpoint"]).token
    assert get(inside, session).json["peer"] == ["172.30.0.2"]
    reply = ask_from(containers[1], where)
    assert (reply.status, reply.text) == (403, "Forbidden.\n")
    assert inside.wait_for_audit("request.refuse", session=session["id"], peer="172.30.0.3")
    delete(inside, session)


def test_the_host_itself_is_no_container(inside: Broker, host: Host,
                                         containers: list[Namespace]) -> None:
    """Neither served by allow_peers = auto nor pinned, by whichever of its addresses."""
    session = open_there(inside)
    for _ in range(3):
        assert ask_from(host, address(session)).status == 403
    with host.entered(), Client(address(session), source="127.0.0.1") as client:
        client.send(request(TOKEN))
        assert client.read().status == 403
    assert get(inside, session).json["peer"] is None
    assert ask_from(containers[0], address(session)).token
    assert ask_from(host, ("172.30.0.1", 8174)).status == 403  # nor by a standing endpoint
    assert ask_from(containers[1], ("172.30.0.1", 8174)).token
    delete(inside, session)


def test_the_launcher_pins_a_container(inside: Broker, host: Host,
                                       containers: list[Namespace]) -> None:
    """100 runs, with an intruder in a second container and on the host, before and after."""
    for _ in range(100):
        session = open_there(inside, pin="launcher")
        where = address(session)
        with containers[1].entered():
            before, after = Client(where), Client(where)
        with host.entered():
            local = Client(where)
        with containers[0].entered():
            agent = Client(where)
        with before, after, local, agent:
            before.send(request(TOKEN))
            local.send(request(TOKEN))
            agent.send(request(TOKEN, host=session["endpoint"]))
            assert patch(inside, session, "172.30.0.2", "fd00:30::2").status == 200
            after.send(request(TOKEN))
            assert agent.read().token
            assert [client.read().status for client in (before, after, local)] == [403] * 3
        assert delete(inside, session).status == 204


@pytest.mark.parametrize("peer", [HERE, HERE6, "127.0.0.1", "::1", "224.0.0.1", "0.0.0.0"])
def test_the_hosts_own_addresses_are_never_pinned(inside: Broker, peer: str) -> None:
    session = open_there(inside, pin="launcher")
    assert error(patch(inside, session, "172.30.0.2", peer))[:2] == (400, "bad_request")
    assert error(post(inside, listen=..., peer=[peer]))[:2] == (400, "bad_request")
    assert get(inside, session).json["peer"] is None
    delete(inside, session)


def test_a_pin_may_lie_outside_the_bridge(inside: Broker) -> None:
    """Rootless engines and routed networks: the pin alone decides."""
    session = open_there(inside, pin="launcher")
    assert patch(inside, session, "198.51.100.7").json["peer"] == ["198.51.100.7"]
    delete(inside, session)


@pytest.mark.parametrize("listen", [HERE6, f"[{HERE6}]:0"])
def test_ipv6_on_the_bridge(inside: Broker, containers: list[Namespace], listen: str) -> None:
    session = open_there(inside, listen=listen)
    where = address(session)
    assert session["listen"] == f"[{HERE6}]:{where[1]}"
    assert ask_from(containers[0], where, host=f"[{HERE6}]:{where[1]}").token
    assert get(inside, session).json["peer"] == ["fd00:30::2"]
    assert ask_from(containers[1], where).status == 403
    delete(inside, session)


def test_a_link_local_peer_is_of_the_link_that_it_comes_from(inside: Broker, host: Host) -> None:
    """Every link has an fe80::/64: a peer at another interface was taken for one at the bridge."""
    session = open_there(inside, listen=HERE6)
    with Namespace() as container, Namespace() as outside:
        host.ip(f"link add v7 type veth peer name eth0 netns {container.path}",
                "link set v7 master br0 up",
                f"link add eth9 type veth peer name eth0 netns {outside.path}",
                "link set eth9 address 02:00:00:00:00:09 addrgenmode none up",
                "addr add fe80::99/64 dev eth9 nodad")
        for place in (container, outside):
            place.ip("link set eth0 addrgenmode none up", "addr add fe80::7/64 dev eth0 nodad",
                     f"-6 route add {HERE6} dev eth0")
        # on its own link nobody says where the bridge's address is
        outside.ip(f"-6 neigh add {HERE6} lladdr 02:00:00:00:00:09 dev eth0")
        reply = ask_from(outside, address(session))
        assert (reply.status, reply.text) == (403, "Forbidden.\n")
        assert ask_from(container, address(session)).token
        host.ip("link del v7", "link del eth9")
    delete(inside, session)


def test_other_addresses_are_no_place_for_a_session(inside: Broker) -> None:
    for listen in ("172.30.0.2", "172.30.0.99", "fd00:30::2", "198.51.100.254"):
        assert error(post(inside, listen=listen)) == (
            400, "bad_request", f"listen {listen} is neither loopback nor an address of a bridge "
            "without a physical port")


def test_a_freed_address_is_the_next_ones(inside: Broker, host: Host) -> None:
    """Docker gives it away at once; nothing of the old session answers there or refuses it."""
    for _ in range(3):
        with leased(inside, listen=HERE, pin="launcher") as lease:
            container = host.container(9)
            assert patch(inside, lease.session, "172.30.0.9").status == 200
            assert ask_from(container, address(lease.session)).token
            host.ip("link del v9")
        eventually("closed", lambda: inside.status()["sessions"]["open"] == 0)
        assert closed_for(host, address(lease.session))


def closed_for(place: Namespace, where: tuple[str, int]) -> bool:
    """Whether a connection from there is refused."""
    with place.entered():
        try:
            Client(where).close()
        except ConnectionRefusedError:
            return True
    return False


# what a host may look like


def test_a_bridge_may_be_made_later(artifacts: Path) -> None:
    """IP_FREEBIND: the engine may start after the broker."""
    with Namespace() as bare, Broker(new_directory(artifacts, "later"), prefix=bare.prefix,
                                     broker={"session_listen": "172.31.0.1"},
                                     profiles={"vertex": {"listen": "172.31.0.1:8174"}}) as broker:
        broker.wait_for_log("^warning: profile vertex: this host has no address 172.31.0.1 yet")
        session = open_there(broker)
        bare.ip("link add br9 type bridge", "addr add 172.31.0.1/24 dev br9",
                "link add v1 type veth peer name eth0", "link set v1 master br9 up",
                "link set br9 up")
        with Namespace() as container:
            bare.ip(f"link set eth0 netns {container.path}")
            container.ip("addr add 172.31.0.2/24 dev eth0", "link set eth0 up")
            # the bridges are read anew once a second
            eventually("served", lambda: ask_from(container, address(session)).status == 200)
            assert ask_from(container, ("172.31.0.1", 8174)).token


def test_auto_is_docker0(artifacts: Path) -> None:
    with Namespace() as bare, Broker(new_directory(artifacts, "docker0"), prefix=bare.prefix,
                                     profiles={"vertex": {"listen": None}}) as broker:
        assert error(post(broker, listen=...)) == (
            400, "bad_request", "there is no docker0 to listen on: name an address with listen, or "
            "set session_listen")
        bare.ip("link add docker0 type bridge", "addr add 172.17.0.1/16 dev docker0")
        assert open_there(broker)["listen"].startswith("172.17.0.1:")


def test_without_descriptors_the_bridges_are_still_known(artifacts: Path, host: Host) -> None:
    """They were forgotten before they were read anew, which takes a descriptor."""
    container = host.container(12)
    with Broker(new_directory(artifacts, "exhausted"), prefix=host.prefix,
                broker={"endpoint_rate": 0},
                profiles={"vertex": {"listen": f"{HERE}:8175"}}) as broker:
        with container.entered():
            kept = Client((HERE, 8175))
        with kept:
            assert kept.ask("/", host="host.docker.internal").status == 200
            limits = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
            end = time.monotonic() + 1.2  # once in it they are read anew
            while time.monotonic() < end:
                assert kept.ask("/", host="host.docker.internal").status == 200
            resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, limits)


def fake_sys(directory: Path, ports: dict[str, list[str]]) -> Path:
    """A /sys/class/net: bridge br0 with these ports; what lies below each, "device" for hardware, "?" for
    what cannot be read."""
    tree = directory / "net"
    for port, below in ports.items():
        (tree / "br0" / "brif" / port).mkdir(parents=True)
        last = tree / port
        last.mkdir(parents=True)
        for name in below:
            if name == "device":
                (last / "device").mkdir()
                break
            if name == "?":
                last.rmdir()
                last.symlink_to(last.name)
                break
            (last / f"lower_{name}").mkdir()
            last = tree / name
            last.mkdir(parents=True)
    return tree


@pytest.mark.parametrize(("ports", "served"), [
    ({"veth0": []}, True),
    ({"veth0": [], "tap0": []}, True),
    ({"eth0": ["device"]}, False),
    ({"veth0": [], "eth0": ["device"]}, False),
    ({"eth0.5": ["eth0", "device"]}, False),
    ({"bond0": ["eth0", "device"]}, False),
    ({"bond0.5": ["bond0", "eth0", "device"]}, False),
    ({"veth0": [], "vlan5": ["bond0", "team0", "eth0", "device"]}, False),
    ({"vlan5": ["dummy0"]}, True),
    ({"veth0": [], "vlan5": ["?"]}, False),
    ({"vlan5": ["bond0", "?"]}, False),
], ids=lambda value: "+".join(value) if isinstance(value, dict) else str(value))
def test_a_bridge_that_reaches_hardware_is_no_place_for_containers(
        artifacts: Path, ports: dict[str, list[str]], served: bool) -> None:
    """A VLAN or a bond of a network card is a way out, too; they were taken for virtual ports."""
    assert shutil.which("mount")
    directory = new_directory(artifacts, "sysfs")
    tree = fake_sys(directory, ports)
    with Host() as host:
        container = host.container(2)
        prefix = host.prefix[:-2] + ['mount --bind "$0" /sys/class/net && exec "$@"', str(tree)]
        with Broker(directory, prefix=prefix, profiles={"vertex": {"listen": f"{HERE}:8174"}}) as broker:
            assert post(broker, listen=HERE).status == (201 if served else 400)
            assert ask_from(container, (HERE, 8174)).status == (200 if served else 403)
