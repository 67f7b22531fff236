# SPDX-License-Identifier: Apache-2.0
"""scripts/host-firewall, in network namespaces without a way out.

198.51.100.254 (RFC 5737) stands in for the metadata address; Docker's chains are those of 20.10, made by hand.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.held_namespaces import Namespace

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/host-firewall"
ADDRESS, ADDRESS6 = "198.51.100.254", "fd20:ce::254"
BRIDGE = "172.17.0.1"
AS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not AS_ROOT, reason="the kernel shows old iptables' tables to root alone; run as root")

# Listens at ports of both protocols and answers with one byte; ready is a line.
SERVER = """
import selectors, socket, sys
selector = selectors.DefaultSelector()
for kind, port in ((socket.SOCK_STREAM, 80), (socket.SOCK_STREAM, 53), (socket.SOCK_DGRAM, 53)):
    s = socket.socket(socket.AF_INET, kind)
    s.bind((sys.argv[1], port))
    if kind == socket.SOCK_STREAM:
        s.listen()
    selector.register(s, selectors.EVENT_READ, kind)
print("ready", flush=True)
while True:
    for key, _ in selector.select():
        if key.data == socket.SOCK_STREAM:
            peer, _ = key.fileobj.accept()
            peer.sendall(b"y")
            peer.close()
        else:
            _, peer = key.fileobj.recvfrom(64)
            key.fileobj.sendto(b"y", peer)
"""
CLIENT = """
import socket, sys
kind = socket.SOCK_STREAM if sys.argv[3] == "tcp" else socket.SOCK_DGRAM
s = socket.socket(socket.AF_INET, kind)
s.settimeout(3)
try:
    s.connect((sys.argv[1], int(sys.argv[2])))
    if kind == socket.SOCK_DGRAM:
        s.send(b"x")
    print("reached" if s.recv(1) == b"y" else "closed")
except OSError as error:
    print(type(error).__name__)
"""


DOCKER = """*filter
:FORWARD DROP
:DOCKER -
:DOCKER-ISOLATION-STAGE-1 -
:DOCKER-USER -
-A FORWARD -j DOCKER-USER
-A FORWARD -j DOCKER-ISOLATION-STAGE-1
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -o docker0 -j DOCKER
-A FORWARD -i docker0 ! -o docker0 -j ACCEPT
-A DOCKER-USER -j RETURN
-A DOCKER-ISOLATION-STAGE-1 -j RETURN
COMMIT
"""


class Host:
    """A namespace that plays the host, with Docker's bridge."""

    def __init__(self, directory: Path) -> None:
        self.namespace = Namespace()
        self.run = self.namespace.run
        self.directory = directory
        self.environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "XTABLES_LOCKFILE": str(directory / "lock")}
        self.run("ip", "link", "add", "docker0", "type", "bridge")
        self.run("ip", "address", "add", f"{BRIDGE}/16", "dev", "docker0")
        self.run("ip", "link", "set", "docker0", "up")

    def rules(self, text: str) -> None:
        """Commands, one a line; `iptables` is the one that Docker uses."""
        for line in text.strip().splitlines():
            name, *arguments = line.split()
            name = {"iptables": "iptables-nft", "ip6tables": "ip6tables-nft"}.get(name, name)
            self.run(name, *arguments, env=self.environment)

    def docker(self, tool: str = "iptables-nft") -> None:
        self.run(f"{tool}-restore", input=DOCKER, env=self.environment)

    def firewall(self, action: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        timer = [] if action == "check" else ["--no-timer"]
        return self.run(SCRIPT, action, "--address", ADDRESS, *timer, *arguments, check=False, env=self.environment)

    def installed(self, *arguments: str) -> None:
        done = self.firewall("install", *arguments)
        assert (done.returncode, done.stderr) == (0, "")

    def ruleset(self) -> list[str]:
        """All rules, without what counts and when it was read."""
        lines = self.run("nft", "list", "ruleset", "inet").stdout.splitlines()
        for tool in ("iptables-nft", "ip6tables-nft", "iptables-legacy", "ip6tables-legacy"):
            lines += self.run(f"{tool}-save", check=AS_ROOT, env=self.environment).stdout.splitlines()
        return [line.split(" [")[0] for line in lines if not line.startswith("#")]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path)
    try:
        yield host
    finally:
        host.namespace.close()


REJECT = f"DOCKER-USER -d {ADDRESS} -m comment --comment postern-firewall -j REJECT"
DNS = f"DOCKER-USER -d {ADDRESS} -p udp --dport 53 -m comment --comment postern-firewall -j ACCEPT"

# What somebody does to good rules; the status and the words of the check; whether install mends it.
BROKEN = {
    "no table": ("nft delete table inet postern", 10, "nft: there is no table inet postern"),
    "a rule before ours": ("nft insert rule inet postern guard accept", 11, "is not as install made it"),
    "a table asleep": ("nft add table inet postern { flags dormant; }", 11, "is not as install made it"),
    "port 53 of the table": ("nft flush chain inet postern guard\n"
                             f"nft add rule inet postern guard ip daddr {ADDRESS} reject\n"
                             f"nft add rule inet postern guard ip6 daddr {ADDRESS6} reject", 11,
                             "is not as install made it"),
    "missing chain": ("iptables -D FORWARD -j DOCKER-USER\niptables -F DOCKER-USER\niptables -X DOCKER-USER", 12,
                      "DOCKER-USER is not; run: systemctl restart docker && "),
    "jump flushed": ("iptables -F FORWARD", 13, "FORWARD does not jump there"),
    "jump for one bridge only": ("iptables -D FORWARD -j DOCKER-USER\niptables -I FORWARD -i eth0 -j DOCKER-USER", 13,
                                 "FORWARD does not jump there"),
    "jump behind an accept": ("iptables -D FORWARD -j DOCKER-USER\niptables -A FORWARD -j DOCKER-USER", 14,
                              "accepts before it jumps"),
    "rule after RETURN": ("iptables -I DOCKER-USER -j RETURN", 15, "behind a RETURN"),
    "rule after the bridge's RETURN": ("iptables -I DOCKER-USER -i docker0 -j RETURN", 15, "behind a RETURN"),
    "no rule": ("iptables -F DOCKER-USER\niptables -A DOCKER-USER -j RETURN", 16, "does not refuse"),
    "rule for TCP only": (f"iptables -D {REJECT}\niptables -I DOCKER-USER -d {ADDRESS} -p tcp -j REJECT", 16,
                          "does not refuse"),
    "IPv6 only": (f"iptables -D {REJECT}", 17, "only the IPv6 metadata address"),
    "IPv6 only in the table": ("nft flush chain inet postern guard\n"
                               f"nft add rule inet postern guard ip6 daddr {ADDRESS6} reject", 17,
                               "only the IPv6 metadata address"),
    "IPv4 only": ("ip6tables -F DOCKER-USER", 18, "ip6tables-nft: only the IPv4 metadata address"),
    "legacy backend": (f"iptables -F DOCKER-USER\niptables-legacy -N DOCKER-USER\niptables-legacy -A {REJECT}\n"
                       "iptables-legacy -I FORWARD -j DOCKER-USER", 19, "which Docker does not use"),
    "port 53 closed": (f"iptables -D {DNS}", 20, "containers lose DNS"),
    "INPUT drops": ("iptables -P INPUT DROP\niptables -F INPUT", 21, "INPUT takes no packets"),
    "INPUT rejects before": ("iptables -I INPUT -j REJECT", 21, "INPUT takes no packets"),
}
# With IPv6 these would be a rule for IPv6 only.
WITHOUT_IPV6 = ("no rule", "rule for TCP only")


@pytest.mark.parametrize("case", [pytest.param(c, marks=needs_root) if "legacy" in c else c for c in BROKEN])
def test_the_check_tells_what_is_wrong_and_its_command_mends_it(host: Host, case: str) -> None:
    commands, status, words = BROKEN[case]
    host.docker()
    if case not in WITHOUT_IPV6:
        host.docker("ip6tables-nft")
    host.installed()
    host.rules(commands)
    before = host.ruleset()
    done = host.firewall("check")
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    assert words in done.stderr and done.stderr.count("\n") == 1
    assert host.ruleset() == before
    repair = done.stderr.strip().split("run: ")[1].split()
    if repair[:4] == ["systemctl", "restart", "docker", "&&"]:
        host.rules("iptables -N DOCKER-USER\niptables -A DOCKER-USER -j RETURN\niptables -I FORWARD -j DOCKER-USER")
        repair = repair[4:]
    mended = host.run(*repair, "--no-timer", check=False, env=host.environment)
    assert (mended.returncode, mended.stderr) == (0, ""), case


def test_the_statuses_are_those_of_the_help() -> None:
    text = subprocess.run([SCRIPT, "--help"], capture_output=True, text=True, check=True).stdout
    for _, status, _ in BROKEN.values():
        assert f"{status} " in text.split("exit status of check:")[1]


def test_without_dockers_chains_the_table_is_enough(host: Host) -> None:
    """Docker with nftables, Podman, or Docker not yet started."""
    assert host.firewall("check").returncode == 10
    host.installed()
    assert host.firewall("check").returncode == 0
    assert "DOCKER" not in "\n".join(host.ruleset())


@needs_root
def test_dockers_chains_in_the_legacy_tables_get_the_rules_there(host: Host) -> None:
    host.docker("iptables-legacy")
    host.installed()
    saved = host.run("iptables-legacy-save", env=host.environment).stdout
    assert saved.index("DOCKER-USER -d 198.51.100.254/32 -m comment") < saved.index("DOCKER-USER -j RETURN")
    host.rules("iptables-legacy -F FORWARD")
    assert host.firewall("check").returncode == 13


def test_install_twice_is_install_once_and_remove_leaves_what_was(host: Host) -> None:
    host.docker()
    before = host.ruleset()
    host.installed()
    once = host.ruleset()
    host.installed()
    assert host.ruleset() == once
    assert host.firewall("remove").returncode == 0
    assert host.ruleset() == before
    assert host.firewall("remove").returncode == 0


def test_a_rule_of_ones_own_is_enough_in_docker_user_and_stays(host: Host) -> None:
    """What other set-ups insert by hand: the same three rules without a comment."""
    host.docker()
    host.installed()
    host.rules(f"""
        iptables -F DOCKER-USER
        iptables -A DOCKER-USER -d {ADDRESS} -p tcp --dport 53 -j ACCEPT
        iptables -A DOCKER-USER -d {ADDRESS} -p udp --dport 53 -j RETURN
        iptables -A DOCKER-USER -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
        iptables -A DOCKER-USER -d {ADDRESS} -j DROP
        iptables -A DOCKER-USER -j RETURN
    """)
    assert host.firewall("check").returncode == 0
    host.installed()
    assert host.firewall("remove").returncode == 0
    assert f"-A DOCKER-USER -d {ADDRESS}/32 -j DROP" in host.run("iptables-nft-save").stdout


def session_ports() -> str:
    """As the broker has them."""
    text = (SCRIPT.parents[1] / "broker/session_ports.h").read_text()
    first, count = (int(re.findall(rf"#define SESSION_PORTS_{name} (\d+)", text)[0]) for name in ("FIRST", "COUNT"))
    return f"{first}:{first + count - 1}"


def input_rules(host: Host) -> list[str]:
    """What INPUT has."""
    return [line for line in host.run("iptables-nft-save").stdout.splitlines() if line.startswith("-A INPUT")]


def accepting(*endpoints: tuple[str, str]) -> list[str]:
    """INPUT's rules for addresses and ports."""
    tail = "-m comment --comment postern-firewall -j ACCEPT"
    return [f"-A INPUT -d {address}/32 -i {bridge} -p tcp -m tcp --dport {ports} {tail}"
            for address, ports in endpoints for bridge in ("docker0", "br-+", "podman+")]


def test_input_is_opened_for_the_endpoints_and_nothing_else(host: Host) -> None:
    host.docker()
    host.rules("iptables -P INPUT DROP")
    host.installed()
    assert input_rules(host) == accepting((BRIDGE, session_ports()))
    host.installed("--endpoint", f"{BRIDGE}:8174", "--endpoint", "10.1.0.1:9000-9010", "--endpoint", "10.1.0.2")
    assert input_rules(host) == accepting((BRIDGE, session_ports()), (BRIDGE, "8174"), ("10.1.0.1", "9000:9010"),
                                          ("10.1.0.2", session_ports()))
    host.rules("ip6tables -P INPUT DROP")
    host.installed("--endpoint", "[fd00::1]:8174")
    assert "-A INPUT -d fd00::1/128 -i docker0 -p tcp -m tcp --dport 8174" in host.run("ip6tables-nft-save").stdout
    assert host.firewall("check", "--no-endpoint").returncode == 0


@pytest.mark.parametrize("arguments", [
    [], ["probe"], ["check", "--what"], ["check", "--address"], ["check", "--address", "::1"],
    ["check", "--endpoint", "fd00::1:80"], ["check", "--endpoint", "localhost:80"]])
def test_usage_is_status_2(host: Host, arguments: list[str]) -> None:
    done = host.run(SCRIPT, *arguments, check=False)
    assert done.returncode == 2 and done.stderr.startswith("host-firewall: ")


def test_the_verdict_has_boot_id_and_time(host: Host) -> None:
    verdict = host.directory / "run" / "firewall.json"
    host.docker()
    host.installed()
    for commands, ok, word, status in (("", True, "good", 0), ("iptables -F FORWARD", False, "no_jump", 13)):
        host.rules(commands)
        assert host.firewall("check", "--verdict", verdict).returncode == status
        written = json.loads(verdict.read_text())
        assert abs(written.pop("time") - time.time()) < 60
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        assert written == {"ok": ok, "verdict": word, "boot_id": boot_id}
        assert stat.S_IMODE(verdict.stat().st_mode) == 0o644
        assert os.listdir(verdict.parent) == [verdict.name]


@contextlib.contextmanager
def made_names(folder: Path) -> Iterator[list[str]]:
    """What is made in the folder meanwhile, or moved there: inotify(7)."""
    libc = ctypes.CDLL(None, use_errno=True)
    names: list[str] = []
    fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        assert fd >= 0 and libc.inotify_add_watch(fd, bytes(folder), 0x100 | 0x80) >= 0  # IN_CREATE, IN_MOVED_TO
        yield names
        data = os.read(fd, 65536)
        while data:
            size = struct.unpack_from("iIII", data)[3]
            names.append(data[16:16 + size].rstrip(b"\0").decode())
            data = data[16 + size:]
    finally:
        os.close(fd)


@needs_root
def test_the_verdict_is_made_where_only_root_writes(host: Host) -> None:
    """Its folder is the broker's user's: a name that root is about to open there could be that user's link."""
    folder = host.directory / "run"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    with made_names(folder) as names:
        host.installed()
        assert host.firewall("check", "--verdict", folder / "firewall.json").returncode == 0
    assert names == ["firewall.json"]
    assert json.loads((folder / "firewall.json").read_text())["ok"]
    os.chown(host.directory, 65534, 65534)
    refused = host.firewall("check", "--verdict", folder / "firewall.json")
    assert refused.returncode == 1 and "not root's alone" in refused.stderr
    os.chown(host.directory, 0, 0)


def test_the_table_alone_waits_for_no_engine(host: Host) -> None:
    host.docker()
    done = host.run(SCRIPT, "install", "--table", "--address", ADDRESS)
    assert done.returncode == 0 and not done.stdout
    assert f"ip daddr {ADDRESS} reject" in host.run("nft", "list", "table", "inet", "postern").stdout
    assert "postern-firewall" not in host.run("iptables-nft-save").stdout


def test_install_and_check_send_no_packet(host: Host) -> None:
    host.docker()
    host.rules("nft add table inet seen\n"
               "nft add chain inet seen out { type filter hook output priority 0; }\n"
               "nft add rule inet seen out ip daddr != 224.0.0.0/4 counter")
    host.installed()
    assert host.firewall("check").returncode == 0
    # The kernel itself tells the multicast groups of a new bridge.
    assert "counter packets 0 bytes 0" in host.run("nft", "list", "table", "inet", "seen").stdout


@pytest.mark.skipif(not AS_ROOT, reason="mounts over the host's folders; run as root")
def test_install_starts_a_timer_that_runs_a_copy(host: Host) -> None:
    """With a stub for systemctl, in a mount namespace of its own."""
    said = host.directory / "said"
    stub = host.directory / "systemctl"
    stub.write_text(f'#!/bin/sh\necho "$@" >>{said}\n')
    stub.chmod(0o755)
    copy = "/usr/local/lib/postern/host-firewall"
    script = f"""
        for folder in /run /etc/systemd /usr/local; do mount -t tmpfs -o mode=755 none $folder; done
        mkdir -p /run/systemd/system /etc/systemd/system
        if [ -e /usr/bin/systemctl ]; then mount --bind {stub} /usr/bin/systemctl; else PATH=$PATH:{host.directory}; fi
        {SCRIPT} install --address {ADDRESS}
        cat /etc/systemd/system/*
        cmp {SCRIPT} {copy}
        {copy} check --address {ADDRESS} --verdict /run/postern/firewall.json
        {copy} check
        nft delete table inet postern
        {copy} check 2>&1 || true
        if [ -e /usr/bin/systemd-analyze ]; then
            systemd-analyze verify --man=no /etc/systemd/system/postern-firewall*.service 2>&1 | grep postern- || true
        fi
        {SCRIPT} remove
        find /etc/systemd /usr/local /run/postern -type f
    """
    done = host.run("unshare", "--mount", "bash", "-euc", script)
    assert f"ExecStart={copy} install --table --address {ADDRESS}\n" in done.stdout
    assert f"ExecStart={copy} install --no-timer --address {ADDRESS}\n" in done.stdout
    assert f"ExecStart={copy} check --verdict /run/postern/firewall.json --address {ADDRESS}\n" in done.stdout
    assert "OnUnitInactiveSec=60\n" in done.stdout and "PartOf=docker.service\n" in done.stdout
    good = f"host-firewall: good: containers do not reach {ADDRESS} and {ADDRESS6}\n"
    # A check without options is of the same address, and so is the repair that it names.
    assert done.stdout.endswith(f"{good}{good}host-firewall: nft: there is no table inet postern; run: "
                                f"{copy} install --address {ADDRESS}\n")
    assert "enable --quiet --now postern-firewall-check.timer" in said.read_text().splitlines()


class Cloud:
    """A container behind Docker's bridge, and the stand-in behind the host."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.container = Namespace(host.namespace)
        self.server = Namespace(host.namespace)
        host.run("ip", "link", "add", "veth0", "type", "veth", "peer", "name", "eth0", "netns", self.container.pid)
        host.run("ip", "link", "set", "veth0", "master", "docker0", "up")
        host.run("ip", "link", "add", "uplink", "type", "veth", "peer", "name", "eth0", "netns", self.server.pid)
        host.run("ip", "address", "add", "198.51.100.1/24", "dev", "uplink")
        host.run("ip", "link", "set", "uplink", "up")
        host.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
        for namespace, address, gateway in ((self.container, "172.17.0.2/16", BRIDGE),
                                            (self.server, f"{ADDRESS}/24", "198.51.100.1")):
            namespace.run("ip", "address", "add", address, "dev", "eth0")
            namespace.run("ip", "link", "set", "eth0", "up")
            namespace.run("ip", "route", "add", "default", "via", gateway)
        self.process = self.server.start(sys.executable, "-c", SERVER, ADDRESS)
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, port: int, protocol: str) -> str:
        return self.container.run(sys.executable, "-c", CLIENT, ADDRESS, str(port), protocol).stdout.strip()

    def answers(self) -> list[str]:
        return [self.ask(80, "tcp"), self.ask(53, "tcp"), self.ask(53, "udp")]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.container.close()
        self.server.close()


@pytest.fixture
def cloud(host: Host) -> Iterator[Cloud]:
    cloud = Cloud(host)
    try:
        yield cloud
    finally:
        cloud.close()


def test_a_container_is_refused_at_once_and_keeps_port_53(host: Host, cloud: Cloud) -> None:
    host.docker()
    assert cloud.answers() == ["reached"] * 3
    host.installed()
    good = ["ConnectionRefusedError", "reached", "reached"]
    assert cloud.answers() == good
    # The table of its own holds where Docker's chains are flushed, and DOCKER-USER where the table is gone.
    host.rules("iptables -F FORWARD\niptables -P FORWARD ACCEPT")
    assert cloud.answers() == good
    host.rules("iptables -F\niptables -A FORWARD -j DOCKER-USER")
    host.installed()
    host.rules("nft delete table inet postern")
    assert cloud.answers() == good
    assert host.firewall("remove").returncode == 0
    assert cloud.answers() == ["reached"] * 3


def test_the_hosts_own_requests_are_not_refused(host: Host, cloud: Cloud) -> None:
    """The broker may need the metadata server itself."""
    host.docker()
    host.installed()
    done = host.run(sys.executable, "-c", CLIENT, ADDRESS, "80", "tcp")
    assert done.stdout.strip() == "reached"
