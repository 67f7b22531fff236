# SPDX-License-Identifier: Apache-2.0
"""What goes over loopback between the clients and the endpoints: seen, not touched."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import struct
import threading
from dataclasses import dataclass
from urllib.parse import urlsplit

ETH_P_ALL = 0x0003
SO_RCVBUFFORCE = 33
ROOM = 16 << 20
DRAIN_S = 30.0

_REQUEST = re.compile(rb"([A-Z]+) (\S+) HTTP/1\.[01]\r\n")
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")


@dataclass
class Request:
    """One request for metadata, and the status it was answered with (0: not answered)."""

    client: str
    method: str
    target: str
    status: int = 0

    @property
    def path(self) -> str:
        """Without the query."""
        return urlsplit(self.target).path

    @property
    def query(self) -> list[str]:
        """The names in the query."""
        fields = urlsplit(self.target).query
        return sorted(field.partition("=")[0] for field in fields.split("&") if field)


def _segment(packet: bytes) -> tuple[int, int, int, bytes] | None:
    """Protocol, ports and payload of a TCP or UDP packet."""
    if packet[0] >> 4 == 4:
        protocol, start = packet[9], (packet[0] & 15) * 4
    else:
        protocol, start = packet[6], 40
    if protocol == socket.IPPROTO_TCP:
        end = start + (packet[start + 12] >> 4) * 4
    elif protocol == socket.IPPROTO_UDP:
        end = start + 8
    else:
        return None
    source, to = struct.unpack_from("!HH", packet, start)
    return protocol, source, to, packet[end:]


class Wire:
    """Listens to loopback, as a context manager. The namespace has no other interface."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._clients: dict[int, str] = {}  # by the endpoint's port
        self._open: dict[tuple[int, int], Request] = {}  # by both ports
        self._drained: dict[bytes, threading.Event] = {}
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        with contextlib.suppress(PermissionError):
            self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
        self._socket.bind(("lo", ETH_P_ALL))
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Wire:
        self._thread.start()
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        self._socket.close()

    def watch(self, port: int, client: str) -> None:
        """What is asked of this port is the client's."""
        self._clients[port] = client

    def forget(self) -> None:
        """Watch no port any more, once all that was sent so far has been seen."""
        marker = b"postern-drained-" + os.urandom(8).hex().encode()
        seen = self._drained[marker] = threading.Event()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.bind(("127.0.0.1", 0))
            sender.sendto(marker, sender.getsockname())
        assert seen.wait(DRAIN_S), "loopback is not heard"
        del self._drained[marker]
        self._clients.clear()
        self._open.clear()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                packet, (_, _, kind, *_) = self._socket.recvfrom(1 << 16)
                segment = _segment(packet) if kind == socket.PACKET_HOST else None
                if segment and segment[3]:
                    self._look(*segment)

    def _look(self, protocol: int, source: int, to: int, payload: bytes) -> None:
        if protocol == socket.IPPROTO_UDP:
            if payload in self._drained:
                self._drained[payload].set()
        elif to in self._clients:
            head = _REQUEST.match(payload)
            if head:
                asked = Request(self._clients[to], head[1].decode(), head[2].decode("latin-1"))
                self.requests.append(asked)
                self._open[source, to] = asked
        elif (to, source) in self._open:
            status = _STATUS.match(payload)
            if status:
                self._open.pop((to, source)).status = int(status[1])
