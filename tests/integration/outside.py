# SPDX-License-Identifier: Apache-2.0
"""The servers that a cloud has at its metadata addresses, as a stand-in behind the forwarding of the engine's
host: in a namespace of its own, at the other end of a veth pair. Neither has a way out of this machine."""

from __future__ import annotations

import collections
import contextlib
import ipaddress
import os
import select
import socket
import struct
import subprocess
import threading
from pathlib import Path

from .engine import Engine
from .namespaces import Namespace

METADATA_V4, METADATA_V6 = "169.254.169.254", "fd20:ce::254"
OTHERS_V4 = ["169.254.169.253", "169.254.170.2", "169.254.170.23", "168.63.129.16", "100.100.100.200",
             "192.0.0.192"]
OTHERS_V6 = ["fd00:ec2::254", "fd00:ec2::253"]
V4, V6 = [METADATA_V4, *OTHERS_V4], [METADATA_V6, *OTHERS_V6]
CREDENTIALS = "OUTSIDE-CREDENTIALS"
HTTP = (f"HTTP/1.0 200 OK\r\nMetadata-Flavor: Google\r\nContent-Length: {len(CREDENTIALS)}\r\n\r\n"
        f"{CREDENTIALS}").encode()
TCP_PORTS = [80, 443, 988, 53]
DNS = 53
# What its resolver says of every name.
ANSWER = "203.0.113.77"
ETH_P_ALL = 3
TCP, UDP = socket.IPPROTO_TCP, socket.IPPROTO_UDP

Packet = tuple[str, str, int, int]


def dns_answer(question: bytes) -> bytes:
    """One A record, or none to other questions."""
    end = question.index(b"\0", 12) + 5
    kind, = struct.unpack_from("!H", question, end - 4)
    counts = struct.pack("!HHHH", 1, 1 if kind == 1 else 0, 0, 0)
    record = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 60, 4) + socket.inet_aton(ANSWER)
    return question[:2] + b"\x81\x80" + counts + question[12:end] + (record if kind == 1 else b"")


class Outside:
    """The stand-in, as a context manager. Meanwhile the engine's host has routes to it, and forwards."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._space = Namespace()
        self._exits = contextlib.ExitStack()
        self._packets: list[Packet] = []
        self._stop, self._stopped = os.pipe()

    def host(self, *commands: str) -> None:
        """Each by ip(8), on the engine's host."""
        for command in commands:
            subprocess.run([*self.engine.namespace.prefix, "ip", *command.split()], check=True,
                           capture_output=True, timeout=20)

    def host_setting(self, name: str, value: str) -> str:
        """Change one of /proc/sys/net there; what it was."""
        with self.engine.namespace.entered():
            before = Path("/proc/sys/net", name).read_text()
            Path("/proc/sys/net", name).write_text(value)
        return before

    def __enter__(self) -> Outside:
        with contextlib.ExitStack() as exits:
            exits.enter_context(self._space)
            self.host(f"link add out0 type veth peer name in0 netns {self._space.path}")
            exits.callback(self.host, "link delete out0")
            self.host("address add 10.77.0.1/24 dev out0", "address add fd00:77::1/64 dev out0 nodad",
                      "link set out0 up")
            self._space.ip("address add 10.77.0.2/24 dev in0", "address add fd00:77::2/64 dev in0 nodad",
                           "link set in0 up", "route add default via 10.77.0.1", "route add default via fd00:77::1",
                           *(f"address add {each} dev lo" for each in V4),
                           *(f"address add {each} dev lo nodad" for each in V6))
            self.host(*(f"route add {each} via 10.77.0.2" for each in V4),
                      *(f"route add {each} via fd00:77::2" for each in V6))
            # With the second, a bridge's address is good at once.
            for name, value in (("ipv6/conf/all/forwarding", "1"), ("ipv6/conf/default/accept_dad", "0")):
                exits.callback(self.host_setting, name, self.host_setting(name, value))
            self._serve(exits)
            self._exits = exits.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def _serve(self, exits: contextlib.ExitStack) -> None:
        with self._space.entered():
            sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
            sniffer.bind(("in0", ETH_P_ALL))
            listeners = [socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128)
                         for port in TCP_PORTS]
            # One an address, so that its answers come from there.
            datagrams = []
            for address in V4 + V6:
                for port in (DNS, 80):
                    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
                    made.bind((address, port))
                    datagrams.append(made)
        thread = threading.Thread(target=self._loop, args=(sniffer, listeners, datagrams))
        thread.start()

        def stop() -> None:
            os.close(self._stopped)
            thread.join()
            os.close(self._stop)
            for each in [sniffer, *listeners, *datagrams]:
                each.close()
        exits.callback(stop)

    def _loop(self, sniffer: socket.socket, listeners: list[socket.socket], datagrams: list[socket.socket]) -> None:
        connections: list[socket.socket] = []
        while True:
            ready, _, _ = select.select([self._stop, sniffer, *listeners, *datagrams, *connections], [], [])
            if self._stop in ready:
                break
            for each in ready:
                with contextlib.suppress(OSError):
                    if each is sniffer:
                        self._see(*sniffer.recvfrom(2048))
                    elif each in listeners:
                        connections.append(each.accept()[0])
                    elif each in datagrams:
                        question, peer = each.recvfrom(2048)
                        each.sendto(dns_answer(question) if each.getsockname()[1] == DNS else CREDENTIALS.encode(),
                                    peer)
                    elif not self._answer(each):
                        connections.remove(each)
                        each.close()
        for each in connections:
            each.close()

    @staticmethod
    def _answer(connection: socket.socket) -> bool:
        """HTTP on every port; on that of DNS DNS as well. Whether it stays open."""
        data = connection.recv(2048)
        if data[:4] in (b"GET ", b"POST"):
            connection.sendall(HTTP)
        elif connection.getsockname()[1] == DNS and len(data) > 14:
            said = dns_answer(data[2:])
            connection.sendall(struct.pack("!H", len(said)) + said)
            return True
        return False

    def _see(self, data: bytes, where: tuple[str, int, int, int, bytes]) -> None:
        if where[2] == socket.PACKET_OUTGOING:
            return
        if where[1] == 0x0800:
            protocol, start = data[9], (data[0] & 15) * 4
            source, to = (str(ipaddress.IPv4Address(data[at:at + 4])) for at in (12, 16))
        elif where[1] == 0x86dd:
            protocol, start = data[6], 40
            source, to = (str(ipaddress.IPv6Address(data[at:at + 16])) for at in (8, 24))
        else:
            return
        if to in V4 + V6:
            port = struct.unpack_from("!H", data, start + 2)[0] if protocol in (TCP, UDP) else 0
            self._packets.append((source, to, protocol, port))

    def forget(self) -> None:
        """Count anew. What was sent before by whoever has ended is there: a veth pair queues nothing."""
        self._packets.clear()

    def seen(self, but_dns_of: list[str] | None = None) -> dict[str, int]:
        """How many packets came for the metadata addresses, as "TO PROTOCOL PORT"; without those to port 53 of
        the addresses named."""
        return dict(collections.Counter(
            f"{to} {protocol} {port}" for _, to, protocol, port in list(self._packets)
            if not (port == DNS and protocol in (TCP, UDP) and to in (but_dns_of or []))))
