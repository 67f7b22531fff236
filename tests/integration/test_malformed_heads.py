# SPDX-License-Identifier: Apache-2.0
"""Heads that are not plain HTTP, and bodies: refused, closed, and never a token."""

from __future__ import annotations

import contextlib
import itertools

import pytest

from .broker import Broker
from .deadline import eventually
from .http1 import TOKEN, Broken, Client, parse, request
from .test_routes_on_the_wire import assert_common

OFFLINE = {"broker": {"endpoint_rate": 0}}

LINE = f"GET {TOKEN} HTTP/1.1\r\n".encode()
HOST = b"Host: localhost\r\n"
FLAVOR = b"Metadata-Flavor: Google\r\n"
END = b"\r\n"

# Each of these would be a good request for a token to a lenient reader.
HEADS = {
    "folded header": LINE + HOST + FLAVOR + b"X: a\r\n b\r\n" + END,
    "folded flavor": LINE + HOST + b"Metadata-Flavor:\r\n Google\r\n" + END,
    "flavor forged by a fold": LINE + HOST + b"Metadata-Fla: Google\r\n vor\r\n" + END,
    "host forged by a fold": LINE + b"Ho: localhost\r\n st\r\n" + FLAVOR + END,
    "fold by tab": LINE + HOST + FLAVOR + b"X: a\r\n\tb\r\n" + END,
    "bare LF everywhere": (LINE + HOST + FLAVOR + END).replace(b"\r\n", b"\n"),
    "bare LF after the request line": LINE.replace(b"\r\n", b"\n") + HOST + FLAVOR + END,
    "bare LF after a header": LINE + HOST.replace(b"\r\n", b"\n") + FLAVOR + END,
    "bare LF at the end": LINE + HOST + FLAVOR + b"\n",
    "bare CR in a value": LINE + HOST + FLAVOR + b"X: a\rb\r\n" + END,
    "flavor behind a bare CR": LINE + HOST + b"X: a\rMetadata-Flavor: Google\r\n" + END,
    "NUL in a value": LINE + HOST + b"Metadata-Flavor: Google\0x\r\n" + END,
    "NUL in another value": LINE + HOST + FLAVOR + b"X: a\0b\r\n" + END,
    "NUL in a name": LINE + HOST + FLAVOR + b"X\0Y: a\r\n" + END,
    "NUL in the host": LINE + b"Host: localhost\0.evil.example\r\n" + FLAVOR + END,
    "NUL in the target": f"GET {TOKEN}\0x HTTP/1.1\r\n".encode() + HOST + FLAVOR + END,
    "NUL behind the target": f"GET {TOKEN}\0 HTTP/1.1\r\n".encode() + HOST + FLAVOR + END,
    "NUL in the method": b"GET\0" + LINE[3:] + HOST + FLAVOR + END,
    "control character in a value": LINE + HOST + FLAVOR + b"X: a\x01b\r\n" + END,
    "DEL in a value": LINE + HOST + FLAVOR + b"X: a\x7fb\r\n" + END,
    "blank before the colon": LINE + HOST + b"Metadata-Flavor : Google\r\n" + END,
    "tab before the colon": LINE + HOST + b"Metadata-Flavor\t: Google\r\n" + END,
    "blank before the name": LINE + HOST + b" Metadata-Flavor: Google\r\n" + END,
    "blank before the first name": LINE + b" Host: localhost\r\n" + FLAVOR + END,
    "no colon": LINE + HOST + FLAVOR + b"nonsense\r\n" + END,
    "no name": LINE + HOST + FLAVOR + b": x\r\n" + END,
    "name that is no token": LINE + HOST + FLAVOR + b"X(Y): a\r\n" + END,
    "blank in a name": LINE + HOST + FLAVOR + b"X Y: a\r\n" + END,
    "two blanks before the target": LINE.replace(b"GET ", b"GET  ") + HOST + FLAVOR + END,
    "tab before the target": LINE.replace(b"GET ", b"GET\t") + HOST + FLAVOR + END,
    "two blanks before the version": LINE.replace(b" HTTP", b"  HTTP") + HOST + FLAVOR + END,
    "blank behind the version": LINE.replace(b"1.1\r\n", b"1.1 \r\n") + HOST + FLAVOR + END,
    "blank in the target": LINE.replace(b"/token", b"/token x") + HOST + FLAVOR + END,
    "no version": f"GET {TOKEN}\r\n".encode() + HOST + FLAVOR + END,
    "HTTP/0.9": LINE.replace(b"1.1", b"0.9") + HOST + FLAVOR + END,
    "HTTP/2.0": LINE.replace(b"1.1", b"2.0") + HOST + FLAVOR + END,
    "HTTP/1.10": LINE.replace(b"1.1", b"1.10") + HOST + FLAVOR + END,
    "http/1.1": LINE.replace(b"HTTP", b"http") + HOST + FLAVOR + END,
    "preface of h2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "two hosts": LINE + HOST + HOST + FLAVOR + END,
    "two flavors": LINE + HOST + FLAVOR + FLAVOR + END,
    "flavor list": LINE + HOST + b"Metadata-Flavor: Google, Google\r\n" + END,
    "lower-case method": LINE.replace(b"GET", b"get") + HOST + FLAVOR + END,
    "non-ASCII in the target": LINE.replace(b"/token", b"/token\xff") + HOST + FLAVOR + END,
    "fragment in the target": LINE.replace(b"/token", b"/token#x") + HOST + FLAVOR + END,
    "absolute form": LINE.replace(b"GET /", b"GET http://localhost/") + HOST + FLAVOR + END,
    "no slash": LINE.replace(b"GET /", b"GET ") + HOST + FLAVOR + END,
    "TLS": bytes.fromhex("160301007a0100007603030000000000") + b"\r\n\r\n",
}

REFUSED = {400, 403, 404, 405, 413, 431, 505}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS.keys())
def test_no_token_for_a_head_that_is_not_plain(offline: Broker, head: bytes) -> None:
    with offline.client() as client:
        client.send(head)
        with contextlib.suppress(Broken):  # closed without an answer is well, too
            reply = client.read()
            assert b"access_token" not in reply.body and reply.status in REFUSED, reply
    assert offline.get("/").status == 200


@pytest.mark.parametrize("name", ["folded header", "bare LF after a header", "NUL in a value",
                                  "blank before the colon", "no colon"])
def test_nothing_behind_a_malformed_head_is_read(offline: Broker, name: str) -> None:
    """Where one head ends is not known any more: what follows could be smuggled."""
    with offline.client() as client:
        client.send(HEADS[name] + request(TOKEN))
        raw = client.rest()
    assert b"access_token" not in raw and raw.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("names", itertools.combinations(
    ["folded header", "NUL in a value", "blank before the colon"], 2), ids=" + ".join)
def test_a_refusal_of_ours_carries_our_headers(offline: Broker, names: tuple[str, str]) -> None:
    ours = 0
    for name in names:
        with offline.client() as client:
            client.send(HEADS[name])
            raw = client.rest()
        found = parse(raw)
        assert found and found[0].status == 400
        if found[0].header("Metadata-Flavor") is not None:  # else libmicrohttpd's own
            ours += 1
            assert_common(found[0])
            assert found[0].header("Content-Type") == "text/plain"
    assert ours, "all of them were libmicrohttpd's own"


BODY = b"x" * 1000
TOO_LARGE = "Request bodies are not accepted.\n"


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT"])
@pytest.mark.parametrize("headers, body", [
    ([("Content-Length", "1000")], BODY),
    ([("Content-Length", "1000")], b""),
    ([("Content-Length", "100000")], BODY * 100),
    ([("Transfer-Encoding", "chunked")], b"5\r\nhello\r\n0\r\n\r\n"),
    ([("Transfer-Encoding", "chunked")], b""),
    ([("Transfer-Encoding", "gzip")], BODY),
    ([("Transfer-Encoding", "identity")], b""),
    ([("Transfer-Encoding", "chunked"), ("Content-Length", "5")], b"0\r\n\r\n"),
    ([("Content-Length", "5"), ("Transfer-Encoding", "chunked")], b"0\r\n\r\n"),
    ([("Content-Length", "5"), ("Content-Length", "5")], b"hello"),
    ([("Content-Length", "0"), ("Content-Length", "5")], b"hello"),
    ([("Content-Length", "5"), ("Content-Length", "0")], b"hello"),
    ([("Expect", "100-continue"), ("Content-Length", "1000")], BODY),
    ([("Expect", "100-continue"), ("Content-Length", "1000")], b""),
], ids=lambda value: None if isinstance(value, bytes) else
    ", ".join(f"{n} {v}" for n, v in value))
def test_a_body_is_refused_and_the_connection_closed(
        offline: Broker, method: str, headers: list[tuple[str, str]], body: bytes) -> None:
    """Before peer, Host and flavor count; libmicrohttpd 1.0 answers some of them itself."""
    with offline.client() as client:
        client.send(request(TOKEN, method=method, flavor=False, headers=headers, body=body))
        raw = client.rest()
    found = parse(raw, head_only=method == "HEAD")
    assert found, raw
    reply = found[0]
    one_length = [name for name, _ in headers if name != "Expect"] == ["Content-Length"]
    if reply.header("Metadata-Flavor") is None and reply.status == 400 and not (
            one_length or headers == [("Transfer-Encoding", "chunked")]):
        return
    assert reply.status == 413 and raw[len(reply.raw_head):].decode() in ("", TOO_LARGE)
    assert (reply.text == TOO_LARGE) == (method != "HEAD")
    assert_common(reply)


@pytest.mark.parametrize("value", ["abc", "+5", "-1", "0x10", "5,5", "10000000000000000000000", ""])
def test_a_content_length_that_is_none_is_refused(offline: Broker, value: str) -> None:
    with offline.client() as client:
        client.send(request(TOKEN, headers=[("Content-Length", value)]))
        client.half_close()
        raw = client.rest()
    assert raw.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 ")) or raw == b""
    assert b"access_token" not in raw


def test_a_content_length_of_zero_is_no_body(offline: Broker) -> None:
    with offline.client() as client:
        for _ in range(2):
            assert client.ask(TOKEN, headers=[("Content-Length", "0")]).token
        assert client.ask("/", method="POST", headers=[("Content-Length", "0")]).status == 405


def test_a_sender_of_5_mb_reads_the_refusal(offline: Broker) -> None:
    """The answer must not be lost in the reset that the unread bytes cause."""
    size = 5_000_000
    for _ in range(5):
        with offline.client() as client:
            client.send(request(TOKEN, method="POST", headers=[("Content-Length", str(size))]))
            with contextlib.suppress(OSError):  # EPIPE or ECONNRESET: the answer stands
                client.send(b"x" * size)
            try:
                reply = client.read()
            except (Broken, OSError) as err:
                raise AssertionError(f"the answer was lost: {err!r}") from None
            assert (reply.status, reply.text) == (413, TOO_LARGE)


@pytest.mark.parametrize("target", ["/", TOKEN])
def test_expect_is_refused_without_an_interim_answer(offline: Broker, target: str) -> None:
    """It announces a body (RFC 9110, section 10.1.1); and no client library reads a 100 here."""
    with offline.client() as client:
        client.send(request(target, headers=[("Expect", "100-continue")]))
        raw = client.rest()
    assert raw.startswith((b"HTTP/1.1 413 ", b"HTTP/1.1 417 ")) and raw.count(b"HTTP/1.1") == 1


def test_what_follows_a_refused_body_is_not_a_request(offline: Broker) -> None:
    """Smuggling: the body of the first is the second."""
    inner = request(TOKEN)
    with offline.client() as client:
        client.send(request("/", method="POST", headers=[("Content-Length", str(len(inner)))],
                            body=inner))
        raw = client.rest()
    assert raw.count(b"HTTP/1.1 ") == 1 and b"access_token" not in raw


def test_many_malformed_heads_leave_no_connection_behind(offline: Broker) -> None:
    for head in list(HEADS.values()) * 3:
        with offline.client() as client:
            client.send(head)
    clients = [Client(offline.address()) for _ in range(60)]
    try:
        assert eventually("room for sixty", lambda: clients[-1].ask("/").status == 200)
    finally:
        for client in clients:
            client.close()


def test_refusals_are_in_the_audit_trail(offline: Broker) -> None:
    reasons = {"malformed": HEADS["blank before the colon"],
               "body": request("/", headers=[("Content-Length", "5")], body=b"hello"),
               "host": request("/", host="evil.example"),
               "flavor": request("/", flavor=False),
               "forwarded": request("/", headers=[("X-Forwarded-For", "1")]),
               "path": request("/unknown"), "method": request("/", method="POST")}
    for reason, whole in reasons.items():
        with offline.client() as client:
            client.send(whole)
            status = client.read().status
        line = offline.wait_for_audit("request.refuse", peer="127.0.0.1", status=status,
                                      profile="vertex", reason=reason)
        assert line["count"] >= 1 and line["session"] is None
