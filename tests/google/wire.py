# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 on one socket (RFC 9112), and the ways in which an answer may go wrong on it."""

from __future__ import annotations

import email.utils
import http
import re
import select
import socket
import ssl
import struct
import threading

from .envelope import Answer, html_page
from .request import Request
from .script import Step

MAX_HEAD = 64 * 1024
MAX_BODY = 32 * 1024 * 1024
IDLE_S = 600.0
HANDSHAKE_S = 30.0
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"


class BadRequest(Exception):
    """Bytes that are no request; answered with an HTML page, then closed, as Google's GFE does."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.answer = html_page(status)


class Wire:
    """One connection, used by one thread."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._buffer = bytearray()

    def handshake(self, context: ssl.SSLContext) -> None:
        """TLS, in the connection's own thread."""
        self.sock.settimeout(HANDSHAKE_S)
        wrapped = context.wrap_socket(self.sock, server_side=True, do_handshake_on_connect=False)
        self.sock = wrapped
        wrapped.do_handshake()

    # reading

    def _more(self) -> bool:
        data = self.sock.recv(65536)
        self._buffer += data
        return bool(data)

    def _until(self, mark: bytes, limit: int) -> bytes | None:
        """The bytes up to a mark; None when the peer closed before the first one."""
        while (at := self._buffer.find(mark)) < 0:
            if len(self._buffer) > limit:
                raise BadRequest(431, "too long")
            if not self._more():
                if self._buffer:
                    raise ConnectionError("closed in the middle of a request")
                return None
        taken = bytes(self._buffer[:at])
        del self._buffer[:at + len(mark)]
        return taken

    def _exactly(self, n: int) -> bytes:
        while len(self._buffer) < n:
            if not self._more():
                raise ConnectionError("closed in the middle of a body")
        taken = bytes(self._buffer[:n])
        del self._buffer[:n]
        return taken

    def _chunked(self) -> bytes:
        body = bytearray()
        while True:
            line = self._until(b"\r\n", MAX_HEAD) or b""
            size = re.fullmatch(rb"([0-9A-Fa-f]{1,8})[ \t]*(;.*)?", line)
            if not size:
                raise BadRequest(400, "bad chunk size")
            n = int(size[1], 16)
            if len(body) + n > MAX_BODY:
                raise BadRequest(413, "body too large")
            if n == 0:
                while self._until(b"\r\n", MAX_HEAD):
                    pass
                return bytes(body)
            body += self._exactly(n)
            if self._exactly(2) != b"\r\n":
                raise BadRequest(400, "bad chunk end")

    def _body(self, method: str, headers: dict[str, str]) -> bytes:
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        if coding is not None and (coding.lower() != "chunked" or length is not None):
            raise BadRequest(400, "bad Transfer-Encoding")
        if length is not None and not re.fullmatch(r"[0-9]{1,12}", length):
            raise BadRequest(400, "bad Content-Length")
        if length is None and coding is None:
            if method in ("POST", "PUT", "PATCH"):
                raise BadRequest(411, "Length Required")
            return b""
        if length is not None and int(length) > MAX_BODY:
            raise BadRequest(413, "body too large")
        if headers.get("expect", "").lower() == "100-continue" and not self._buffer:
            self.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        return self._chunked() if length is None else self._exactly(int(length))

    def read_request(self) -> Request | None:
        """The next request; None when the peer is done."""
        self.sock.settimeout(IDLE_S)
        raw = self._until(b"\r\n\r\n", MAX_HEAD)
        if raw is None:
            return None
        lines = raw.decode("latin-1").split("\r\n")
        first = re.fullmatch(rf"({_TOKEN}) (/[!-~]*|\*) HTTP/(1\.[01])", lines[0])
        if not first:
            raise BadRequest(400, "bad request line")
        headers: dict[str, str] = {}
        for line in lines[1:]:
            field = re.fullmatch(rf"({_TOKEN}):[ \t]*(.*?)[ \t]*", line)
            if not field:
                raise BadRequest(400, "bad header line")
            name = field[1].lower()
            headers[name] = f"{headers[name]}, {field[2]}" if name in headers else field[2]
        if first[3] == "1.1" and "host" not in headers:
            raise BadRequest(400, "no Host")
        body = self._body(first[1], headers)
        return Request(first[1], first[2], first[3], headers, body)

    # writing

    def send(self, data: bytes) -> None:
        """Send all of it."""
        self.sock.sendall(data)

    def wait(self, event: threading.Event) -> bool:
        """Wait for an event; False when the peer closed first."""
        poller = select.poll()
        poller.register(self.sock.fileno(), select.POLLRDHUP)
        while not event.wait(0.05):
            if poller.poll(0):
                return False
        return True

    def wake(self) -> None:
        """Unblock the connection's thread from another one."""
        try:
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)
        except OSError:
            pass

    def reset(self) -> None:
        """Close with a TCP RST (SO_LINGER with 0 seconds)."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self) -> None:
        """Close; TLS says close_notify first and waits for nothing (RFC 8446 6.1)."""
        try:
            if isinstance(self.sock, ssl.SSLSocket):
                self.sock.setblocking(False)
                self.sock.unwrap()
        except (OSError, ValueError):
            pass
        self.sock.close()


def keeps_alive(request: Request, step: Step) -> bool:
    """Whether the connection stays after this answer (RFC 9112 9.3)."""
    asked = request.headers.get("connection", "").lower()
    return request.version == "1.1" and "close" not in asked and not step.close


def render(answer: Answer, request: Request | None, step: Step, now_s: float,
           keep: bool) -> tuple[bytes, bytes]:
    """Head and body as bytes; a stream goes in chunks (RFC 9112 7.1)."""
    chunked = answer.chunks is not None and request is not None and request.version == "1.1"
    try:
        phrase = http.HTTPStatus(answer.status).phrase
    except ValueError:
        phrase = "Unknown"
    fields = [("Content-Type", answer.content_type), ("Vary", "Origin, X-Origin, Referer")]
    fields += answer.headers
    if not step.no_date:
        fields.append(("Date", email.utils.formatdate(now_s, usegmt=True)))
    fields += [("Server", "ESF"), ("X-XSS-Protection", "0"), ("X-Frame-Options", "SAMEORIGIN"),
               ("X-Content-Type-Options", "nosniff")]
    if chunked:
        fields.append(("Transfer-Encoding", "chunked"))
        pieces = [piece for piece in answer.chunks or [] if piece]
        body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    else:
        fields.append(("Content-Length", str(len(answer.body))))
        body = answer.body
    if not keep:
        fields.append(("Connection", "close"))
    elif request is not None and request.version == "1.0":
        fields.append(("Connection", "keep-alive"))
    head = f"HTTP/1.1 {answer.status} {phrase}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in fields) + "\r\n"
    if request is not None and request.method == "HEAD":
        body = b""
    return head.encode("latin-1"), body
