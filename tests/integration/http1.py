# SPDX-License-Identifier: Apache-2.0
"""An HTTP/1.1 client that sends any bytes and is strict about what comes back."""

from __future__ import annotations

import json
import re
import select
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from . import leaks
from .deadline import allowed

Address = tuple[str, int] | str
Headers = Iterable[tuple[str, str]]

ACCOUNTS = "/computeMetadata/v1/instance/service-accounts"
TOKEN = f"{ACCOUNTS}/default/token"
FLAVOR = ("Metadata-Flavor", "Google")

_STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-5][0-9]{2}) ([ -~]*)")
_HEADER_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~]*?)[ \t]*")


class Broken(Exception):
    """The peer closed, or sent what is no answer."""


@dataclass(repr=False)
class Reply:
    """An answer, read whole."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes
    raw_head: bytes = field(default=b"")

    def __repr__(self) -> str:
        body = "a token" if b"access_token" in self.body else repr(self.body[:300])
        return f"<Reply {self.status} {self.headers} {body}>"

    def all(self, name: str) -> list[str]:
        """Every value of a header."""
        return [value for each, value in self.headers if each.lower() == name.lower()]

    def header(self, name: str) -> str | None:
        """The value of a header that may be there once."""
        values = self.all(name)
        assert len(values) <= 1, f"{name} came {len(values)} times"
        return values[0] if values else None

    @property
    def text(self) -> str:
        """The body as ASCII."""
        return self.body.decode("ascii")

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def token(self) -> str:
        """The access token of a 200, which must be well-formed."""
        assert self.status == 200, self
        answer = self.json
        assert set(answer) == {"access_token", "expires_in", "token_type"}
        assert answer["token_type"] == "Bearer"
        assert type(answer["expires_in"]) is int and answer["expires_in"] > 0, answer["expires_in"]
        return str(answer["access_token"])

    @property
    def expires_in(self) -> int:
        """The life of the token of a 200."""
        assert self.token
        return int(self.json["expires_in"])


def request(target: str | bytes = "/", *, method: str = "GET", version: str = "1.1",
            host: str | None = "localhost", flavor: bool = True, headers: Headers = (),
            body: bytes = b"") -> bytes:
    """The bytes of a request; what is wrong about it is the caller's wish."""
    raw_target = target if isinstance(target, bytes) else target.encode("latin-1")
    fields = [("Host", host)] if host is not None else []
    fields += [FLAVOR] if flavor else []
    fields += list(headers)
    lines = [method.encode() + b" " + raw_target + b" HTTP/" + version.encode()]
    lines += [f"{name}: {value}".encode("latin-1") for name, value in fields]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def parse(data: bytes, *, head_only: bool = False) -> tuple[Reply, int] | None:
    """The first answer of some bytes and its length; None where it is not whole yet."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    lines = data[:end].split(b"\r\n")
    first = _STATUS_LINE.fullmatch(lines[0])
    if not first:
        raise Broken(f"no status line: {lines[0][:80]!r}")
    headers = []
    for line in lines[1:]:
        match = _HEADER_LINE.fullmatch(line)
        if not match:
            raise Broken(f"no header line: {line[:80]!r}")
        headers.append((match[1].decode(), match[2].decode()))
    reply = Reply(int(first[1]), first[2].decode(), headers, b"", data[:end + 4])
    length = 0 if head_only or reply.status < 200 or reply.status in (204, 304) else \
        int(reply.header("Content-Length") or 0)
    if len(data) < end + 4 + length:
        return None
    reply.body = data[end + 4:end + 4 + length]
    if reply.status == 200 and b'"access_token"' in reply.body:
        leaks.note([reply.json["access_token"]])
    return reply, end + 4 + length


class Client:
    """One connection."""

    def __init__(self, address: Address, *, source: str | None = None,
                 timeout_s: float = 10.0) -> None:
        family = socket.AF_UNIX if isinstance(address, str) else \
            socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.settimeout(allowed(timeout_s))
        self._buffer = b""
        try:
            if source is not None:
                self.sock.bind((source, 0))
            self.sock.connect(address)
            if family != socket.AF_UNIX:
                self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            self.sock.close()
            raise

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, data: bytes) -> None:
        """Send all of it."""
        self.sock.sendall(data)

    def half_close(self) -> None:
        """Say that no more will come."""
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Close with a TCP RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self) -> None:
        """Close it."""
        self.sock.close()

    def read(self, *, head_only: bool = False) -> Reply:
        """The next answer; `head_only` for the answer to a HEAD."""
        while True:
            found = parse(self._buffer, head_only=head_only)
            if found:
                self._buffer = self._buffer[found[1]:]
                return found[0]
            data = self.sock.recv(65536)
            if not data:
                raise Broken(f"closed after {self._buffer[:80]!r}")
            self._buffer += data

    def ask(self, target: str | bytes = "/", **how: Any) -> Reply:
        """Send a request and read its answer."""
        self.send(request(target, **how))
        return self.read(head_only=how.get("method") == "HEAD")

    def rest(self) -> bytes:
        """Everything until the peer closes; a reset counts as that."""
        while True:
            try:
                data = self.sock.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                taken, self._buffer = self._buffer, b""
                return taken
            self._buffer += data

    def is_silent(self) -> bool:
        """Whether nothing has come and the connection is open, right now."""
        if self._buffer:
            return False
        poller = select.poll()
        poller.register(self.sock, select.POLLIN)
        return not poller.poll(0)
