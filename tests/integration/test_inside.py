# SPDX-License-Identifier: Apache-2.0
"""An endpoint inside the sandbox: what a container of a real engine gets there, and what it loses."""

from __future__ import annotations

import contextlib
import json
import re
import signal
from pathlib import Path

import pytest

from . import leaks
from .engine import PATH
from .launch import ASK, Place

ADDRESS = "169.254.169.254"
TOKEN_PATH = "/computeMetadata/v1/instance/service-accounts/default/token"
CURL = f'curl -s -f -m 10 -H "Metadata-Flavor: Google" http://{ADDRESS}{TOKEN_PATH}'
WGET = f'wget -q -O - --header "Metadata-Flavor: Google" http://{ADDRESS}{TOKEN_PATH}'


@pytest.mark.parametrize("ask", [CURL, CURL.replace(ADDRESS, "metadata.google.internal"),
                                 WGET.replace(ADDRESS, "metadata")])
def test_a_token_comes_without_a_network_a_capability_or_a_variable(inside: Place,
                                                                    ask: str) -> None:
    ran = inside.sh(f"env -i PATH=/usr/bin:/bin sh -c '{ask}'; id -u >&2; "
                    "grep -E '^(CapBnd|NoNewPrivs)' /proc/self/status >&2",
                    options=["--network", "none", "--engine-arg", "--read-only=true"])
    info = inside.google.token_info(ran.token)
    assert info is not None and info.minted
    assert ran.err.split() == ["1000", "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]
    assert inside.is_clean()


def test_the_variables_name_the_address_and_no_proxy_has_it(inside: Place) -> None:
    seen = dict(line.split("=", 1) for line in inside.sh("env").out.splitlines() if "=" in line)
    for name in ("GCE_METADATA_HOST", "GCE_METADATA_IP", "GCE_METADATA_ROOT"):
        assert seen[name] == ADDRESS
    for name in ("NO_PROXY", "no_proxy"):
        assert set(seen[name].split(",")) == {ADDRESS, "metadata.google.internal", "metadata"}


@pytest.fixture
def networks(inside: Place) -> list[str]:
    """A bridge of the user's own, and one that leads nowhere."""
    names = [f"{inside.owner}a", f"{inside.owner}b"]
    inside.engine.docker("network", "create", names[0])
    inside.engine.docker("network", "create", "--internal", names[1])
    return names


def test_on_every_bridge_there_is_a_token_and_the_names_are_the_door_s(
        inside: Place, networks: list[str]) -> None:
    try:
        for network in ("bridge", *networks):
            ran = inside.sh(f"hostname >&2; ls /sys/class/net >&2; {ASK}",
                            options=["--network", network, "--engine-arg", "--hostname=castle"])
            assert inside.google.token_info(ran.token) is not None
            assert ran.err.split() == ["castle", "eth0", "lo"]
    finally:
        for network in networks:
            inside.engine.docker("network", "rm", network)
    assert inside.is_clean()


def test_port_80_is_the_door_s_and_every_other_the_agent_s(inside: Place) -> None:
    ran = inside.sh("mkdir /tmp/w; httpd -p 80 -h /tmp/w || echo no 80; httpd -p 0.0.0.0:8174 -h /tmp/w && echo 8174",
                    options=["--user", "0:0", "--engine-arg", "--tmpfs=/tmp"])
    assert ran.out.split() == ["no", "80", "8174"], ran


def test_the_sandbox_joins_its_door_and_each_has_what_it_should(inside: Place) -> None:
    run = inside.start("sleep", "60")
    sandbox = inside.engine.inspect(inside.running())
    door = inside.engine.inspect(inside.door())
    assert sandbox["HostConfig"]["NetworkMode"] == f"container:{door['Id']}"
    assert not sandbox["HostConfig"]["CapAdd"] and not sandbox["HostConfig"]["Privileged"]
    assert set(door["HostConfig"]["CapAdd"]) == {"NET_ADMIN", "NET_BIND_SERVICE"}
    assert door["HostConfig"]["ReadonlyRootfs"] and all(not m["RW"] for m in door["Mounts"])
    status = Path(f"/proc/{door['State']['Pid']}/status").read_text()
    assert re.findall(r"^(CapEff|CapPrm|Seccomp):\t(\S+)$", status, re.M) == [
        ("CapPrm", "0" * 16), ("CapEff", "0" * 16), ("Seccomp", "2")]
    session = inside.sessions()[0]
    assert (session["attach"], session["listen"]) == ("inside", f"{ADDRESS}:80")
    assert (session["pin"], session["peer"]) == (None, None)
    run.signal(signal.SIGTERM)
    assert run.wait().status == 143
    assert inside.is_clean()


# The real engine, but for one answer.
OTHERWISE = """#!/bin/sh
if [ "$1" = info ]; then
	/usr/bin/docker "$@" | sed 's/"{key}":"[^"]*"/"{key}":"{value}"/'
else
	exec /usr/bin/docker "$@"
fi
"""


def put_engine(place: Place, script: str) -> Path:
    """A `docker` before the real one; its folder."""
    folder = place.directory / "bin"
    folder.mkdir()
    program = folder / "docker"
    program.write_text(script)
    program.chmod(0o755)
    place.path = f"{folder}:{PATH}"
    return folder


@pytest.mark.parametrize("key, value", [("DefaultRuntime", "runsc"),
                                        ("KernelVersion", "5.10.0-28-amd64")])
def test_what_lacks_the_ability_is_refused_before_anything(inside: Place, key: str,
                                                           value: str) -> None:
    put_engine(inside, OTHERWISE.format(key=key, value=value))
    ran = inside.run("true")
    assert ran.status == 3
    assert value in ran.err and "--attach gateway, whose endpoint" in ran.err
    assert not inside.broker.audit_of("session.open")
    assert inside.run("true", options=["--provider", "gemini"]).status == 0
    assert inside.is_clean()


RECORD = """#!/bin/sh
printf '%s\\n' "$@" >>{folder}/argv
env >>{folder}/environ
[ "$1" != start ] || cat {runs}/*/door/ticket >>{folder}/ticket
exec /usr/bin/docker "$@"
"""


def test_the_ticket_is_in_a_file_until_the_door_has_it_and_nowhere_else(inside: Place) -> None:
    folder = put_engine(inside, RECORD.format(folder=inside.directory / "bin",
                                              runs=inside.runtime / "postern-runs"))
    run = inside.start("sleep", "60")
    sandbox, door = inside.running(), inside.door()
    ticket = (folder / "ticket").read_text().strip()
    assert re.fullmatch("[0-9a-f]{32}", ticket), "no ticket was there when the door started"
    (folder / "ticket").unlink()
    leaks.note([ticket])
    assert not list(inside.runtime.glob("postern-runs/*/door/*")), "the ticket is still there"
    for each in ((folder / "argv").read_text(), (folder / "environ").read_text(),
                 json.dumps([inside.engine.inspect(sandbox), inside.engine.inspect(door)]),
                 inside.engine.docker("logs", door).stderr, inside.broker.log,
                 json.dumps(inside.broker.audit)):
        assert ticket not in each
    for path in [*Path("/proc").glob("[0-9]*/cmdline"), *Path("/proc").glob("[0-9]*/environ")]:
        with contextlib.suppress(OSError):
            assert ticket.encode() not in path.read_bytes()
    run.signal(signal.SIGTERM)
    ran = run.wait()
    assert ran.status == 143
    assert ticket not in ran.out + ran.err


def test_no_rule_of_the_host_is_asked_for(inside: Place) -> None:
    assert inside.run("true", verified_firewall=True).status == 0


def test_a_dry_run_shows_the_door_and_makes_nothing(inside: Place) -> None:
    ran = inside.run("true", options=["--dry-run", "--json", "--network", "none"])
    plan = json.loads(ran.out)
    assert "--network=none" in plan["door"]["argv"] and "--network=container:DOOR" in plan["argv"]
    assert plan["start_argv"][1:3] == ["start", "--attach"]
    assert not inside.broker.audit_of("session.open")
    assert inside.is_clean()


def test_what_is_shut_is_the_caller_s_choice(inside: Place) -> None:
    options = ["--shut", "169.254.169.254", "--shut", "fd20:ce::/32", "--shut", "203.0.113.0/24"]
    ran = inside.sh(f"{CURL}; ip rule >&2", options=options)
    assert "203.0.113.0/24" in ran.err and "169.254.0.0/16" not in ran.err
    assert "access_token" in ran.out


def test_an_engine_that_fails_at_the_door_is_told_of(inside: Place) -> None:
    ran = inside.run("true", options=["--network", "no-such-network"])
    assert ran.status == 125
    assert "no-such-network" in ran.err
    assert inside.is_clean()


def test_a_door_that_cannot_reach_the_broker_says_so(inside: Place) -> None:
    socket = Path(inside.broker.control_path).parent / "private" / "attach" / "sock"
    socket.rename(socket.with_name("elsewhere"))
    ran = inside.run("true")
    socket.with_name("elsewhere").rename(socket)
    assert ran.status == 125, ran
    assert "the door says" in ran.err and "--attach gateway" in ran.err
    assert inside.is_clean()
