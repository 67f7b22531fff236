# SPDX-License-Identifier: Apache-2.0
"""Bodies on the control socket: 64 KiB, one length, five seconds. Contract, section 10."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable

import pytest

from . import procfs
from .broker import Broker
from .deadline import FACTOR
from .http1 import Reply, request
from .sessions import JSON, SESSIONS, control, error, listed, whole

LIMIT = 65536
WISH = json.dumps({"profile": "vertex", "listen": "127.0.0.1"}).encode()


def chunked(pieces: Iterable[bytes], end: bytes = b"0\r\n\r\n") -> bytes:
    """RFC 9112 section 7.1."""
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + end


def post_raw(broker: Broker, headers: list[tuple[str, str]], body: bytes) -> Reply:
    """POST /v1/sessions with these headers and bytes."""
    with broker.control_client() as client:
        client.send(request(SESSIONS, method="POST", host="postern", flavor=False, body=body,
                            headers=[JSON, *headers]))
        return client.read()


def padded(size: int) -> bytes:
    """A wish of so many bytes; JSON allows blanks."""
    return WISH[:-1] + b" " * (size - len(WISH)) + b"}"


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_a_body_in_chunks(offline: Broker, step: int) -> None:
    pieces = [WISH[at:at + step] for at in range(0, len(WISH), step)]
    reply = post_raw(offline, [("Transfer-Encoding", "chunked")], chunked(pieces))
    assert reply.status == 201


def test_trailers_of_a_chunked_body_are_nothing(offline: Broker) -> None:
    reply = post_raw(offline, [("Transfer-Encoding", "chunked")],
                     chunked([WISH], b"0\r\nContent-Length: 5\r\nX: y\r\n\r\n"))
    assert reply.status in (201, 400)
    assert offline.control("/healthz").status == 200


def test_a_body_byte_by_byte(offline: Broker) -> None:
    with offline.control_client() as client:
        for byte in whole(SESSIONS, "POST", WISH):
            client.send(bytes([byte]))
        assert client.read().status == 201


def test_64_kib_are_taken_and_no_more(offline: Broker) -> None:
    assert control(offline, SESSIONS, "POST", padded(LIMIT)).status == 201
    status, code, message = error(control(offline, SESSIONS, "POST", padded(LIMIT + 1)))
    assert (status, code) == (413, "bad_request")
    assert message == "a body is at most 64 KiB, with one length"
    for size in (10**6, 10**9, 2**64 - 1, 2**64):
        reply = post_raw(offline, [("Content-Length", str(size))], b"")
        assert reply.status == 413, size


def test_64_kib_in_chunks_are_taken_and_more_are_told_so(offline: Broker) -> None:
    """The connection broke off without an answer."""
    for size, status in ((LIMIT, 201), (LIMIT + 1, 413), (LIMIT * 3, 413)):
        body = padded(size)
        pieces = [body[at:at + 4096] for at in range(0, size, 4096)]
        assert post_raw(offline, [("Transfer-Encoding", "chunked")],
                        chunked(pieces)).status == status, size
    assert error(post_raw(offline, [("Transfer-Encoding", "chunked")],
                          chunked([b"x" * 70000])))[1] == "bad_request"


def test_chunks_without_end_end_after_five_seconds(offline: Broker) -> None:
    before = procfs.rss_kib(offline.pid)
    begun = time.monotonic()
    with offline.control_client() as client:
        client.send(request(SESSIONS, method="POST", host="postern", flavor=False,
                            headers=[("Transfer-Encoding", "chunked")]))
        piece = chunked([b"x" * 16384] * 4, b"")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            while time.monotonic() - begun < 20 * FACTOR:
                client.send(piece)
                time.sleep(0.01)  # a client that takes its time
    assert 4.5 < time.monotonic() - begun < 7 * FACTOR
    assert procfs.rss_kib(offline.pid) - before < 4096 * FACTOR


@pytest.mark.parametrize("headers", [
    [("Content-Length", "5"), ("Content-Length", "50")],
    [("Content-Length", "5"), ("Content-Length", "5")],
    [("Content-Length", "5, 5")], [("Content-Length", "5"), ("Transfer-Encoding", "chunked")],
    [("Transfer-Encoding", "chunked"), ("Content-Length", "5")],
], ids=str)
def test_two_lengths_are_refused(offline: Broker, headers: list[tuple[str, str]]) -> None:
    """Which one counts is how requests are smuggled: RFC 9112 sections 6.1 and 6.3."""
    before = len(listed(offline))
    reply = post_raw(offline, headers, chunked([WISH]))
    assert reply.status in (400, 413)
    assert len(listed(offline)) == before


@pytest.mark.parametrize("length", ["+5", "-1", "0x5", "five", "", "1.0", "5 5"])
def test_a_length_that_is_no_number(offline: Broker, length: str) -> None:
    assert post_raw(offline, [("Content-Length", length)], b"hello").status in (400, 413)
    assert offline.control("/healthz").status == 200


def test_half_a_body_and_then_silence(offline: Broker) -> None:
    begun = time.monotonic()
    clients = [offline.control_client() for _ in range(3)]
    data = whole(SESSIONS, "POST", WISH)
    clients[0].send(data[:-5])
    clients[1].send(data[:data.index(b"\r\n\r\n") + 4])
    clients[2].send(request(SESSIONS, method="POST", host="postern", flavor=False,
                            headers=[("Transfer-Encoding", "chunked")], body=b"5\r\nhel"))
    for client in clients:
        assert client.read().status == 408
        assert client.rest() == b""
        client.close()
    assert 4.5 < time.monotonic() - begun < 6.5 * FACTOR


def test_expect_continue_gets_its_100(offline: Broker) -> None:
    """curl asks so for large bodies: RFC 9110 section 10.1.1."""
    body = padded(5000)
    with offline.control_client() as client:
        client.send(request(SESSIONS, method="POST", host="postern", flavor=False, headers=[
            JSON, ("Content-Length", str(len(body))), ("Expect", "100-continue")]))
        assert client.read().status == 100
        client.send(body)
        assert client.read().status == 201


def test_expect_continue_is_refused_before_the_body_is_sent(offline: Broker) -> None:
    with offline.control_client() as client:
        client.send(request(SESSIONS, method="POST", host="postern", flavor=False, headers=[
            ("Content-Length", str(LIMIT + 1)), ("Expect", "100-continue")]))
        assert client.read().status == 413


@pytest.mark.parametrize(("target", "method"), [
    ("/v1/status", "GET"), ("/metrics", "GET"), ("/healthz", "GET"), (SESSIONS, "GET"),
    (f"{SESSIONS}/0123456789abcdef", "GET"), (f"{SESSIONS}/0123456789abcdef", "DELETE")])
def test_other_calls_take_no_body(offline: Broker, target: str, method: str) -> None:
    assert error(control(offline, target, method, WISH)) == (
        400, "bad_request", "this call takes no body")
    reply = control(offline, target, method, b"")
    assert reply.status in (200, 404)


def test_a_body_does_not_spill_into_the_next_request(offline: Broker) -> None:
    hidden = whole("/healthz")
    with offline.control_client() as client:
        client.send(whole(SESSIONS, "POST", hidden) + whole("/v1/status"))
        assert client.read().status == 400
        assert "profiles" in client.read().json
