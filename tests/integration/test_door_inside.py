# SPDX-License-Identifier: Apache-2.0
"""What an agent that is hostile does inside its own sandbox: take the port, remove the address, reach the
door, the attach socket or a descriptor. With a real engine and a real broker."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .attacked import broker  # noqa: F401 - fixtures
from .broker import Broker
from .deadline import eventually
from .door_program import METADATA_V4, METADATA_V6
from .engine import IMAGE, Engine
from .procfs import status
from .sandboxes import AGENT, ROOT, USER, Container, NotAttached, Sandbox, network

TOKEN_OF = ("curl -sS --max-time 20 -H 'Metadata-Flavor: Google' "
            "http://{}/computeMetadata/v1/instance/service-accounts/default/token")


@pytest.fixture(scope="module")
def bridge(engine: Engine) -> Iterator[str]:
    """One with both families."""
    with network(engine, "inside0", 1) as name:
        yield name


@pytest.fixture(scope="module")
def sandbox(engine: Engine, broker: Broker, bridge: str) -> Iterator[Sandbox]:
    """One for all the attacks: none may leave a trace."""
    with Sandbox(engine, broker, "--network", bridge) as made:
        yield made


def own(sandbox: Sandbox) -> tuple[str, str]:
    """Its addresses on the bridge."""
    settings = sandbox.door.network()
    return settings["IPAddress"], settings["GlobalIPv6Address"]


def gets_a_token(sandbox: Sandbox, host: str = METADATA_V4) -> bool:
    """Whether its agent does, by curl."""
    done = sandbox.agent.sh(TOKEN_OF.format(host))
    return done.returncode == 0 and "access_token" in json.loads(done.stdout)


def has_ipv6(sandbox: Sandbox) -> bool:
    """Whether its engine leaves its loopback IPv6 beside a network without: Docker does from 26 on."""
    return sandbox.door.run("cat", "/proc/sys/net/ipv6/conf/lo/disable_ipv6").stdout == "0\n"


def test_it_is_served_at_the_address_and_by_the_names(sandbox: Sandbox) -> None:
    hosts = (METADATA_V4, f"[{METADATA_V6}]", "metadata.google.internal", "metadata")
    done = sandbox.agent.sh(" && ".join(TOKEN_OF.format(host) for host in hosts))
    assert done.returncode == 0 and done.stdout.count("access_token") == len(hosts), done.stderr


@pytest.mark.parametrize("who", [USER, ROOT])
def test_no_form_of_bind_has_the_port(sandbox: Sandbox, who: str) -> None:
    found = sandbox.agent.python("attack_binds.py", "80", *own(sandbox), "2", who=who)
    assert found["forms"] == 432 and found["tried"] > 2 * 432
    assert found["bound"] == [] and sum(found["outcomes"].values()) == found["tried"], found
    assert found["outcomes"]["EADDRINUSE"] > found["tried"] * 0.8, found["outcomes"]
    assert gets_a_token(sandbox)


@pytest.mark.parametrize("who", [USER, ROOT])
def test_a_port_with_a_listener_alone_is_had_by_some(sandbox: Sandbox, who: str) -> None:
    """The forms work: it is the guard that is in their way."""
    with sandbox.agent.entered(), socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((METADATA_V4, 82))
        listener.listen()
        found = sandbox.agent.python("attack_binds.py", "82", *own(sandbox), "1", who=who)
        taken = [form for form in found["bound"] if form[:2] == ["0.0.0.0", "eth0"]]
        assert taken and found["outcomes"]["EADDRINUSE"] > 0, found


IP_CHANGES = """\
address del 169.254.169.254/32 dev lo
address add 10.9.9.9/32 dev lo
link set lo down
link set eth0 down
link add v0 type veth peer name v1
route del default
route add 169.254.169.254/32 dev eth0
rule add pref 1 lookup main
rule del pref 3
rule del pref 4
neigh add 169.254.169.254 lladdr 02:00:00:00:00:01 dev eth0
"""
IP6_CHANGES = """\
address del fd20:ce::254/128 dev lo
rule add pref 1 lookup main
rule del pref 4
"""
# In the container, whose filter and read-only /proc/sys count.
OTHER_CHANGES = ["echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter", "echo 1 >/proc/sys/net/ipv6/conf/lo/disable_ipv6",
                 "unshare -U -r -n true", "nsenter -t 1 -n true", "ip address del 169.254.169.254/32 dev lo"]


def shown(sandbox: Sandbox) -> str:
    """All that the door has set up."""
    return sandbox.door.run("sh", "-c", "ip rule; ip -6 rule; ip -oneline address show lo; ip route").stdout


@pytest.mark.parametrize("who", [USER, ROOT])
def test_the_namespace_cannot_be_changed(sandbox: Sandbox, who: str) -> None:
    before = shown(sandbox)
    assert "8: from all to 169.254.169.254 ipproto udp" in " ".join(before.split())
    for own_users in ([], ["unshare", "--user", "--map-root-user"]):
        # The engine's filter would end the second kind; here the namespace's owner alone decides.
        for family, changes in (("-4", IP_CHANGES), ("-6", IP6_CHANGES)):
            done = sandbox.agent.run(*own_users, "ip", family, "-force", "-batch", "-", who=who, check=False,
                                     input=changes)
            assert done.stderr.count("Operation not permitted") == changes.count("\n"), done.stderr
    script = "\n".join(f"({change}) 2>/dev/null && echo 'done: {change}'" for change in OTHER_CHANGES)
    said = sandbox.agent.sh(f"{script}\necho end", *(["--user", "0:0"] if who == ROOT else []))
    assert said.stdout == "end\n", said
    assert shown(sandbox) == before
    assert gets_a_token(sandbox)


def test_the_door_is_neither_seen_nor_signalled(sandbox: Sandbox) -> None:
    done = sandbox.agent.sh("for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo; done; kill -9 -1; "
                            "find / -xdev -name 'postern*' -o -xdev -name sock -type s; cat /proc/mounts")
    assert "postern-door" not in done.stdout and "/attach" not in done.stdout
    assert "sleep" in done.stdout
    # sleep is process 1 of its namespace, and nothing there can kill it
    assert status(sandbox.door.pid, "State").startswith("S") and status(sandbox.agent.pid, "Name") == "sleep"


def test_the_attach_socket_is_out_of_reach(sandbox: Sandbox) -> None:
    shown = sandbox.agent.sh("cat /proc/net/unix; find / -xdev -type s; cat /proc/mounts").stdout
    assert "Path" in shown and " / " in shown
    assert "/private" not in shown and "/attach" not in shown and "/sock" not in shown


@pytest.mark.parametrize("options", [["--user", "1000:1000", *AGENT], ["--user", "0:0", *AGENT]])
def test_not_even_with_the_door_s_processes_in_sight(engine: Engine, sandbox: Sandbox, options: list[str]) -> None:
    """`--pid container:` is refused by the launcher; should it not be, no descriptor and no memory is had."""
    with Container(engine, "--network", f"container:{sandbox.door.id}", "--pid", f"container:{sandbox.door.id}",
                   *options, IMAGE, "sleep", "60") as other:
        seen = other.sh("tr '\\0' ' ' </proc/1/cmdline; cat /proc/1/environ; cat /proc/1/fd/3; cd /proc/1/root; "
                        "head -c 1 /proc/1/mem; cat /proc/1/maps")
        assert seen.stdout.strip() == "/postern-door"
        assert sandbox.lease.door["ticket"] not in seen.stdout and "attach" not in seen.stdout
        # Permission denied, for each of the five.
        assert seen.stderr.count("denied") == 5, (seen.stdout, seen.stderr)


def test_no_privilege_is_left_in_the_container(sandbox: Sandbox) -> None:
    for field in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert status(sandbox.door.pid, field) == "0" * 16, field
    assert (status(sandbox.door.pid, "NoNewPrivs"), status(sandbox.door.pid, "Seccomp")) == ("1", "2")
    inspected = json.dumps(sandbox.engine.inspect(sandbox.door.id))
    assert sandbox.lease.door["ticket"] not in inspected and sandbox.lease.door["secret"] not in inspected


# Its life under an engine. Each has a sandbox of its own, with no network: that is the quickest.

def test_a_sandbox_without_a_network_has_it_too(engine: Engine, broker: Broker) -> None:
    with Sandbox(engine, broker, "--network", "none") as sandbox:
        assert gets_a_token(sandbox)
        assert gets_a_token(sandbox, f"[{METADATA_V6}]") == has_ipv6(sandbox)


def test_a_door_that_was_frozen_goes_on(engine: Engine, broker: Broker) -> None:
    with Sandbox(engine, broker, "--network", "none") as sandbox:
        engine.docker("pause", sandbox.door.id)
        engine.docker("unpause", sandbox.door.id)
        eventually("waiting again", lambda: status(sandbox.door.pid, "State").startswith("S"))
        assert gets_a_token(sandbox)


def test_networks_that_come_and_go_leave_the_walls(engine: Engine, broker: Broker, bridge: str) -> None:
    with network(engine, "plain0", 6, ipv6=False) as plain, Sandbox(engine, broker, "--network", plain) as sandbox:
        def walls() -> str:
            return sandbox.door.run("sh", "-c", "ip rule; ip -6 rule; ip xfrm policy; ip -4 address show lo").stdout
        before, had_ipv6 = walls(), has_ipv6(sandbox)
        assert "to fd20:ce::/32 prohibit" in before and "to 169.254.0.0/16 prohibit" in before
        for change, name in (("connect", bridge), ("disconnect", plain), ("disconnect", bridge)):
            engine.docker("network", change, name, sandbox.door.id)
            assert walls() == before and gets_a_token(sandbox), (change, name)
            if had_ipv6:
                assert gets_a_token(sandbox, f"[{METADATA_V6}]")
                continue
            with sandbox.agent.entered(), pytest.raises(OSError):
                socket.create_connection((METADATA_V6, 80), timeout=1).close()


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 0), (signal.SIGKILL, 137)])
def test_a_door_that_ends_takes_the_endpoint_with_it(
        engine: Engine, broker: Broker, number: signal.Signals, code: int) -> None:
    with Sandbox(engine, broker, "--network", "none") as sandbox:
        engine.docker("kill", "--signal", number.name, sandbox.door.id)
        assert sandbox.doors_end() == code
        assert sandbox.lease.is_over()
        assert not gets_a_token(sandbox)
        # Still the sandbox's own: it fails closed.
        assert "169.254.169.254/32" in sandbox.agent.run("ip", "address", "show", "lo").stdout


def test_the_host_s_network_is_refused_before_anything_is_changed(engine: Engine, broker: Broker) -> None:
    def shown() -> list[str]:
        return [subprocess.run([*engine.namespace.prefix, "ip", *words], check=True, capture_output=True,
                               text=True).stdout for words in (["rule"], ["-6", "rule"], ["address", "show", "lo"])]
    before = shown()
    with pytest.raises(NotAttached, match="postern-door: the broker refuses: "):
        with Sandbox(engine, broker, "--network", "host", sysctls=False):
            pass
    assert shown() == before
