# SPDX-License-Identifier: Apache-2.0
"""What the door does in a network namespace, in which order, and how it ends. The engine comes later."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import door_program as doors
from .deadline import allowed, eventually
from .door_program import METADATA_V4, METADATA_V6, SO_NETNS_COOKIE, Attach, Door
from .forbid import forbidding
from .namespaces import Namespace, needs_namespaces
from .procfs import descriptors, status

pytestmark = needs_namespaces

V4_DEFAULT = ["0: from all lookup local", "32766: from all lookup main", "32767: from all lookup default"]
V6_DEFAULT = V4_DEFAULT[:2]
V4_RULES = [
    f"1: from all to {METADATA_V4} iif lo ipproto udp dport 53 lookup main proto static",
    f"2: from all to {METADATA_V4} iif lo ipproto tcp dport 53 lookup main proto static",
    "3: from all lookup local proto static",
    "4: from all to 169.254.0.0/16 prohibit proto static",
    "5: from all to 168.63.129.16 prohibit proto static",
    "6: from all to 100.100.100.200 prohibit proto static",
    "7: from all to 192.0.0.192 prohibit proto static",
    f"8: from all to {METADATA_V4} ipproto udp dport 53 prohibit proto static",
    *V4_DEFAULT[1:],
]
V6_RULES = [V6_DEFAULT[0], "4: from all to fd20:ce::/32 prohibit proto static",
            "5: from all to fd00:ec2::/32 prohibit proto static", V6_DEFAULT[1]]
LO = ["127.0.0.1/8", "::1/128"]
SHUT_V4 = ["169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32"]
SO_BINDTODEVICE, NETLINK_XFRM, PR_SET_SECCOMP = 25, 6, 22


def said(namespace: Namespace, *command: str) -> list[str]:
    """The lines of ip(8), inside."""
    out = subprocess.run(["nsenter", f"--net={namespace.path}", "--", "ip", *command], check=True,
                         capture_output=True, text=True, timeout=20).stdout
    return [" ".join(line.split()) for line in out.splitlines()]


def rules(namespace: Namespace) -> tuple[list[str], list[str]]:
    """Those of IPv4 and of IPv6."""
    return said(namespace, "-4", "rule"), said(namespace, "-6", "rule")


def addresses(namespace: Namespace) -> list[str]:
    """Those of lo."""
    return [line.split()[3] for line in said(namespace, "-oneline", "address", "show", "lo")]


def egress(namespace: Namespace) -> list[str]:
    """The policies of XFRM, two lines of ip(8) each."""
    lines = said(namespace, "xfrm", "policy")
    return sorted(f"{what} {how}" for what, how in zip(lines[::2], lines[1::2], strict=True))


def is_untouched(namespace: Namespace) -> bool:
    """Whether nothing is left of a door."""
    return (rules(namespace) == (V4_DEFAULT, V6_DEFAULT) and addresses(namespace) == LO
            and egress(namespace) == [])


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    """A sandbox's."""
    with Namespace() as made:
        yield made


@pytest.fixture
def attach() -> Iterator[Attach]:
    """A broker's end, in a directory that every user can enter."""
    with tempfile.TemporaryDirectory(prefix="pd-") as directory:
        Path(directory).chmod(0o755)
        with Attach(Path(directory)) as made:
            yield made


def refusal(namespace: Namespace, attach: Attach, *options: str, **how: object) -> tuple[int, str]:
    """How a door ends that the broker lets in: its code and its one line."""
    with Door(namespace, attach.directory, options=options, **how) as door:  # type: ignore[arg-type]
        with attach.accept() as contact:
            contact.hear()
            contact.say("go")
            assert contact.is_closed()
        code, line = door.end()
    assert re.fullmatch(r"postern-door: [ -~]{10,300}\n", line), line
    return code, line


def test_nothing_is_changed_before_the_ticket_is_accepted(namespace: Namespace, attach: Attach) -> None:
    with Door(namespace, attach.directory) as door, attach.accept() as contact:
        assert contact.hear() == f"T {door.ticket}"
        assert is_untouched(namespace)
        with namespace.entered(), socket.socket() as inside:
            cookie = inside.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8)
        assert contact.cookie() == int.from_bytes(cookie, "little")
        contact.say("no not yet")
        assert door.end() == (doors.REFUSED, "postern-door: the broker refuses: not yet\n")
    assert is_untouched(namespace)


def test_addresses_and_rules_are_those_of_the_page(namespace: Namespace, attach: Attach) -> None:
    with Door(namespace, attach.directory), attach.accept() as contact:
        contact.hear()
        contact.attach()
        assert rules(namespace) == (V4_RULES, V6_RULES)
        assert addresses(namespace) == [LO[0], f"{METADATA_V4}/32", *sorted([f"{METADATA_V6}/128", LO[1]],
                                                                           reverse=True)]
        assert "scope host" in said(namespace, "address", "show", "to", METADATA_V4)[1]
        assert egress(namespace) == sorted([
            *(f"src 0.0.0.0/0 dst {METADATA_V4}/32 proto {each} dport 53 dir out priority 1 ptype main"
              for each in ("udp", "tcp")),
            *(f"src 0.0.0.0/0 dst {each} dir out action block priority 2 ptype main" for each in SHUT_V4)])


def test_what_the_command_line_shuts_and_opens(namespace: Namespace, attach: Attach) -> None:
    options = ["--shut", "203.0.113.0/24", "--dns", "203.0.113.7", "--shut", "2001:db8::/32",
               "--dns", "2001:db8::7", "--shut", "198.51.100.9"]
    with Door(namespace, attach.directory, options=options), attach.accept() as contact:
        contact.hear()
        contact.attach()
        assert rules(namespace) == ([
            *V4_RULES[:3],
            "4: from all to 203.0.113.7 iif lo ipproto udp dport 53 lookup main proto static",
            "5: from all to 203.0.113.7 iif lo ipproto tcp dport 53 lookup main proto static",
            "6: from all to 203.0.113.0/24 prohibit proto static",
            "7: from all to 198.51.100.9 prohibit proto static",
            f"8: from all to {METADATA_V4} ipproto udp dport 53 prohibit proto static",
            *V4_DEFAULT[1:],
        ], [
            V6_DEFAULT[0],
            "4: from all to 2001:db8::7 iif lo ipproto udp dport 53 lookup main proto static",
            "5: from all to 2001:db8::7 iif lo ipproto tcp dport 53 lookup main proto static",
            "6: from all to 2001:db8::/32 prohibit proto static",
            V6_DEFAULT[1],
        ])
        found = "\n".join(egress(namespace))
        assert found.count(" action block ") == 2 and found.count("dst 203.0.113.7/32 proto ") == 2
        assert "dst 203.0.113.0/24 dir out action block" in found and "169.254.0.0" not in found


def test_the_sockets_listen_on_loopback_alone(namespace: Namespace, attach: Attach) -> None:
    with Door(namespace, attach.directory), attach.accept() as contact:
        contact.hear()
        v4, v6 = contact.attach()
        assert v4.getsockname() == (METADATA_V4, 80)
        assert v6.getsockname()[:2] == (METADATA_V6, 80)
        for each, family in ((v4, socket.AF_INET), (v6, socket.AF_INET6)):
            assert (each.family, each.type) == (family, socket.SOCK_STREAM)
            assert each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
            assert each.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT) == 0
            assert each.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16) == b"lo\0"
            assert fcntl.fcntl(each, fcntl.F_GETFL) & os.O_NONBLOCK
            each.close()


def test_without_ipv6_on_loopback_there_is_one_socket_and_all_walls(namespace: Namespace, attach: Attach) -> None:
    with namespace.entered():
        # /proc/sys is of the thread's own namespace
        Path("/proc/sys/net/ipv6/conf/lo/disable_ipv6").write_text("1")
    with Door(namespace, attach.directory), attach.accept() as contact:
        contact.hear()
        assert [each.getsockname() for each in contact.attach()] == [(METADATA_V4, 80)]
        assert rules(namespace) == (V4_RULES, V6_RULES)
        with namespace.entered(), socket.socket(socket.AF_INET6) as other, pytest.raises(OSError, match="in use"):
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            other.bind(("::", 80))


def test_no_privilege_is_left_and_nothing_but_its_sockets(namespace: Namespace, attach: Attach) -> None:
    with Door(namespace, attach.directory) as door, attach.accept() as contact:
        contact.hear()
        contact.attach()
        for field in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            assert status(door.pid, field) == "0" * 16, field
        assert (status(door.pid, "NoNewPrivs"), status(door.pid, "Seccomp")) == ("1", "2")
        assert status(door.pid, "Threads") == "1"
        held = [re.sub(r":?\[.*", "", what) for fd, what in descriptors(door.pid).items() if fd > 2]
        assert sorted(held) == ["anon_inode", *["socket"] * 5], held


def test_ambient_capabilities_go_and_its_memory_is_nobody_s(namespace: Namespace, attach: Attach) -> None:
    """Of a user other than root they would stay otherwise; and what is not dumpable is root's in /proc."""
    kept = ",".join(f"+{name}" for name in doors.CAPABILITIES)
    with Door(namespace, attach.directory, user=["--reuid=1000", "--clear-groups", f"--ambient-caps={kept}"]) as door:
        with attach.accept() as contact:
            contact.hear()
            assert int(status(door.pid, "CapAmb"), 16) == 0x1400
            contact.attach()
            assert status(door.pid, "Uid").split()[1] == "1000"
            for field in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                assert status(door.pid, field) == "0" * 16, field
            assert Path(f"/proc/{door.pid}/fd").stat().st_uid == 0


def test_the_ticket_is_in_no_argument_and_no_environment(namespace: Namespace, attach: Attach) -> None:
    with Door(namespace, attach.directory) as door, attach.accept() as contact:
        assert contact.hear() == f"T {door.ticket}"
        contact.attach()
        for name in ("cmdline", "environ"):
            held = Path(f"/proc/{door.pid}/{name}").read_bytes()
            assert held and door.ticket.encode() not in held, name


def test_it_is_static_and_small() -> None:
    data = doors.binary().read_bytes()
    assert data[:5] == b"\x7fELF\x02"
    offset, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    kinds = [struct.unpack_from("<I", data, offset + i * size)[0] for i in range(count)]
    pt_interp, pt_dynamic = 3, 2
    assert pt_interp not in kinds and pt_dynamic not in kinds
    assert len(data) < 1 << 20
    done = subprocess.run([doors.binary(), "--version"], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"postern-door \d+\.\d+\.\d+\n", done.stdout)


# What it refuses.

def test_a_second_door_is_refused_and_changes_nothing(namespace: Namespace, attach: Attach) -> None:
    with Door(namespace, attach.directory), attach.accept() as first:
        first.hear()
        sockets = first.attach()
        with Door(namespace, attach.directory) as second, attach.accept() as contact:
            contact.hear()
            # By this the broker refuses it: nothing was changed yet.
            assert contact.cookie() == first.cookie()
            contact.say("go")
            code, line = second.end()
        assert code == doors.TAKEN and "already" in line
        assert rules(namespace) == (V4_RULES, V6_RULES)
        with namespace.entered(), socket.create_connection((METADATA_V4, 80), allowed(5)):
            sockets[0].settimeout(allowed(5))
            sockets[0].accept()[0].close()


def test_in_the_broker_s_own_namespace_the_broker_can_tell(namespace: Namespace, tmp_path: Path) -> None:
    """Of a door on the host's network."""
    with namespace.entered(), socket.socket() as own:
        with Attach(tmp_path) as attach, Door(namespace, attach.directory) as door, attach.accept() as contact:
            contact.hear()
            assert contact.cookie() == int.from_bytes(
                own.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8), "little")
            contact.say("no the sandbox needs a network namespace of its own")
            code, line = door.end()
    assert code == doors.REFUSED and line.endswith(" of its own\n")
    assert is_untouched(namespace)


@pytest.mark.parametrize("where", [
    f"{METADATA_V4}/16 dev eth0", f"{METADATA_V4}/32 dev lo", f"{METADATA_V4}/32 dev eth0",
    f"{METADATA_V6}/64 dev eth0 nodad", f"10.0.0.1 peer {METADATA_V4}/32 dev eth0"])
def test_an_address_that_is_there_is_nobody_s_to_take(namespace: Namespace, attach: Attach, where: str) -> None:
    namespace.ip("link add eth0 type veth peer name other", "link set eth0 up", f"address add {where}")
    before = addresses(namespace)
    code, line = refusal(namespace, attach)
    assert code == doors.TAKEN and "already" in line
    assert rules(namespace) == (V4_DEFAULT, V6_DEFAULT) and addresses(namespace) == before


@pytest.mark.parametrize("family", ["-4", "-6"])
@pytest.mark.parametrize("change", [
    "rule add pref 9 lookup main", "rule add pref 100 fwmark 7 lookup 7", "rule add pref 40000 prohibit",
    "rule add pref 32766 tos 0x10 lookup main", "rule add pref 100 suppress_prefixlength 0 lookup main",
    "rule add pref 100 uidrange 1-2 lookup main", "rule add pref 100 dport 53 lookup main",
    "rule add pref 100 iif lo lookup main", "rule add pref 100 sport 53 lookup main",
    "rule delete pref 32766", "rule add pref 100 nop", "rule add pref 32765 lookup main protocol kernel"])
def test_rules_that_are_not_the_kernel_s_are_refused_and_nothing_is_left(
        namespace: Namespace, attach: Attach, family: str, change: str) -> None:
    namespace.ip(f"{family} {change}")
    before = rules(namespace)
    assert before != (V4_DEFAULT, V6_DEFAULT)
    code, line = refusal(namespace, attach)
    assert code == doors.ALIEN and "policy rules" in line
    assert rules(namespace) == before and addresses(namespace) == LO


def test_a_copy_of_a_kernel_s_rule_is_not_the_kernel_s(namespace: Namespace, attach: Attach) -> None:
    namespace.ip("rule delete pref 32767", "rule add pref 32767 lookup default")
    assert refusal(namespace, attach)[0] == doors.ALIEN
    assert addresses(namespace) == LO


def test_xfrm_policies_of_others_are_refused_and_nothing_is_left(namespace: Namespace, attach: Attach) -> None:
    namespace.ip("xfrm policy add dst 169.254.169.254/32 dir out action allow priority 0")
    before = egress(namespace)
    code, line = refusal(namespace, attach)
    assert code == doors.ALIEN and "XFRM" in line
    assert rules(namespace) == (V4_DEFAULT, V6_DEFAULT) and addresses(namespace) == LO
    assert egress(namespace) == before


def test_a_kernel_without_xfrm_has_the_rules_alone(namespace: Namespace, attach: Attach) -> None:
    without = forbidding("socket", 2, NETLINK_XFRM, errno.EPROTONOSUPPORT)
    with Door(namespace, attach.directory, without=without), attach.accept() as contact:
        contact.hear()
        assert len(contact.attach()) == 2
        assert rules(namespace) == (V4_RULES, V6_RULES) and egress(namespace) == []


@pytest.mark.parametrize("call, argument, value, code, words", [
    ("setsockopt", 2, SO_BINDTODEVICE, doors.DEVICE, "does not let the door bind to lo; Linux 5.7"),
    ("prctl", 0, PR_SET_SECCOMP, doors.CONFINE, "filter of system calls"),
    ("socket", 2, NETLINK_XFRM, doors.RULE, "XFRM")])
def test_a_kernel_that_does_not_do_it(namespace: Namespace, attach: Attach, call: str, argument: int, value: int,
                                      code: int, words: str) -> None:
    found, line = refusal(namespace, attach, without=forbidding(call, argument, value, errno.EPERM))
    assert found == code and words in line and "not permitted" in line


def test_an_address_that_cannot_be_added(namespace: Namespace, attach: Attach) -> None:
    """XFRM, which asks for NET_ADMIN first, is not there."""
    without = forbidding("socket", 2, NETLINK_XFRM, errno.EPROTONOSUPPORT)
    code, line = refusal(namespace, attach, capabilities=["net_bind_service"], without=without)
    assert code == doors.ADDRESS and "NET_ADMIN" in line
    assert is_untouched(namespace)


def test_a_port_that_is_taken(namespace: Namespace, attach: Attach) -> None:
    with namespace.entered(), socket.create_server(("127.0.0.1", 80)):
        code, line = refusal(namespace, attach)
    assert code == doors.BIND and "port 80" in line and "in use" in line


@pytest.mark.parametrize("kept, code, word", [
    (["net_bind_service"], doors.RULE, "NET_ADMIN"), (["net_admin"], doors.BIND, "NET_BIND_SERVICE")])
def test_a_capability_that_is_missing_is_named(
        namespace: Namespace, attach: Attach, kept: list[str], code: int, word: str) -> None:
    found, line = refusal(namespace, attach, capabilities=kept)
    assert found == code and word in line
    if code == doors.RULE:
        assert is_untouched(namespace)


def test_no_broker(namespace: Namespace, attach: Attach, tmp_path: Path) -> None:
    attach.close()
    for options in ([], ["--attach", str(tmp_path / "nowhere")]):
        with Door(namespace, attach.directory, options=options) as door:
            code, line = door.end()
        assert code == doors.CONNECT and "attach" in line
    assert is_untouched(namespace)


@pytest.mark.parametrize("ticket", ["", "0" * 31, "0" * 33, "0" * 31 + "G", "0" * 31 + "A", "0" * 32 + "\nx"])
def test_a_ticket_that_is_none(namespace: Namespace, attach: Attach, ticket: str) -> None:
    with Door(namespace, attach.directory, ticket) as door:
        code, line = door.end()
    assert code == doors.TICKET and "ticket" in line


def test_a_ticket_that_is_not_there(namespace: Namespace, attach: Attach, tmp_path: Path) -> None:
    with Door(namespace, attach.directory, options=["--ticket", str(tmp_path / "nowhere")]) as door:
        code, line = door.end()
    assert code == doors.TICKET and "No such file" in line


@pytest.mark.parametrize("arguments", [
    ["--nonsense"], ["word"], ["--shut"], ["--shut", "1.2.3.4/33"], ["--shut", "0.0.0.0/0"],
    ["--shut", "1.2.3.4/24"], ["--shut", "1.2.3.4/"], ["--shut", "1.2.3/24"], ["--dns", "1.2.3.4/32"],
    ["--dns", "name"], ["--shut", "fd00::1/64"], ["--nonsense", "x"], ["--shut", "1.2.3.4/+8"],
    ["--shut", "1" * 64], [word for number in range(33) for word in ("--shut", f"10.0.0.{number}")]])
def test_a_bad_command_line_is_usage(arguments: list[str]) -> None:
    done = subprocess.run([doors.binary(), *arguments], capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == doors.USAGE and done.stdout == ""
    assert re.fullmatch(r"postern-door: [ -~]+\n", done.stderr), done.stderr


@pytest.mark.parametrize("answer", ["", "gone", "go ", "ok", "ok " + "5" * 31, "ok " + "5" * 33, "maybe", "no",
                                    "ok " + "5" * 32, "n" * 300, "go\0", "no " + "x" * 300])
def test_an_answer_that_is_none(namespace: Namespace, attach: Attach, answer: str) -> None:
    with Door(namespace, attach.directory) as door, attach.accept() as contact:
        contact.hear()
        contact.say(answer)
        code, line = door.end()
    # An empty datagram reads as the end of a connection.
    assert (code, line.count("\n")) == (doors.PROTOCOL if answer else doors.GONE, 1)
    assert is_untouched(namespace)


def test_what_the_broker_says_cannot_write_to_a_terminal(namespace: Namespace, attach: Attach) -> None:
    with Door(namespace, attach.directory) as door, attach.accept() as contact:
        contact.hear()
        contact.say("no \x1b[2Jcleared\n\x7f")
        assert door.end() == (doors.REFUSED, "postern-door: the broker refuses: ?[2Jcleared??\n")


def test_a_broker_that_goes_before_it_answers(namespace: Namespace, attach: Attach) -> None:
    with Door(namespace, attach.directory) as door:
        with attach.accept() as contact:
            contact.hear()
        code, line = door.end()
    assert code == doors.GONE and "did not answer" in line
    assert is_untouched(namespace)


def test_a_broker_that_refuses_the_sockets(namespace: Namespace, attach: Attach) -> None:
    with Door(namespace, attach.directory) as door, attach.accept() as contact:
        contact.hear()
        contact.say("go")
        for each in contact.hear_sockets():
            each.close()
        contact.say("no that is not what was asked for")
        assert door.end()[0] == doors.REFUSED


# How it ends, and how it goes on.

@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("moment", ["asking", "attached", "looking for a broker"])
def test_a_signal_ends_it_at_once(namespace: Namespace, attach: Attach, number: signal.Signals, moment: str) -> None:
    with Door(namespace, attach.directory) as door, attach.accept() as contact:
        contact.hear()
        if moment != "asking":
            contact.attach()
        if moment == "looking for a broker":
            attach.close()
            contact.connection.close()
        started = time.monotonic()
        door.signal(number)
        assert door.end() == (doors.ENDED, "")
        assert time.monotonic() - started < allowed(3)


def test_the_broker_ends_it(namespace: Namespace, attach: Attach) -> None:
    for attached in (False, True):
        with Namespace() as fresh, Door(fresh, attach.directory) as door, attach.accept() as contact:
            contact.hear()
            if attached:
                contact.attach()
            contact.say("end")
            assert door.end() == (doors.ENDED, "")
    assert is_untouched(namespace)


def test_it_goes_on_after_it_was_stopped(namespace: Namespace, attach: Attach) -> None:
    """Its poll is then restart_syscall(2), which the filter must know."""
    with Door(namespace, attach.directory) as door, attach.accept() as contact:
        contact.hear()
        contact.attach()
        for _ in range(3):
            door.signal(signal.SIGSTOP)
            eventually("stopped", lambda: status(door.pid, "State").startswith("T"))
            door.signal(signal.SIGCONT)
            eventually("waiting again", lambda: status(door.pid, "State").startswith("S"))
        assert not contact.is_closed(0)
        contact.say("end")
        assert door.end() == (doors.ENDED, "")


def test_its_sockets_are_offered_again_to_a_broker_that_comes_back(namespace: Namespace, attach: Attach) -> None:
    with Door(namespace, attach.directory) as door:
        for secret in ("5" * 32, "a" * 32):
            if attach.listener is None:
                attach.open()
                # One that does not know the session yet.
                for _ in range(3):
                    with attach.accept() as contact:
                        assert contact.hear() == "R " + "5" * 32
            with attach.accept() as contact:
                assert contact.hear() == (f"T {door.ticket}" if secret[0] == "5" else "R " + "5" * 32)
                contact.say("go")
                sockets = contact.hear_sockets()
                contact.say(f"ok {secret}")
                with namespace.entered(), socket.create_connection((METADATA_V4, 80), allowed(5)):
                    sockets[0].settimeout(allowed(5))
                    sockets[0].accept()[0].close()
                attach.close()
            for each in sockets:
                each.close()
            # It waits in the door's own copy.
            with namespace.entered():
                socket.create_connection((METADATA_V4, 80), allowed(5)).close()
        door.signal(signal.SIGTERM)
        assert door.end() == (doors.ENDED, "")


def test_a_broker_that_does_not_know_it_any_more(namespace: Namespace, attach: Attach) -> None:
    with Door(namespace, attach.directory) as door:
        with attach.accept() as contact:
            contact.hear()
            contact.attach()
        with attach.accept() as contact:
            assert contact.hear() == "R " + "5" * 32
            contact.say("no the session is over")
            assert door.end()[0] == doors.REFUSED


def test_a_broker_that_does_not_come_back(namespace: Namespace, attach: Attach) -> None:
    """Ten seconds, by the page."""
    with Door(namespace, attach.directory) as door:
        with attach.accept() as contact:
            contact.hear()
            sockets = contact.attach()
        attach.close()
        started = time.monotonic()
        for each in sockets:
            each.close()
        code, line = door.end(30)
        took = time.monotonic() - started
    assert code == doors.GONE and "10 s" in line
    assert 9.5 < took < allowed(20), took
    # Nobody listens, and the address is still the namespace's own.
    with namespace.entered(), pytest.raises(ConnectionRefusedError):
        socket.create_connection((METADATA_V4, 80), allowed(5))
