# SPDX-License-Identifier: Apache-2.0
"""The connection to Google: TLS, one of it, and what it does when it hangs."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.google.ca import make_authority
from tests.google.script import Step
from tests.google.standin import Standin

from .broker import Broker
from .conftest import Starter
from .deadline import eventually
from .http1 import TOKEN, request
from .latency import assert_quick
from .test_mint_failures import TEMPORARY, assert_reported, explanation

pytestmark = pytest.mark.real_time

MINT = "generateAccessToken"
OPEN = {"endpoint_rate": 0}


def test_one_tls_connection_to_an_api_serves_all_calls(start: Starter, google: Standin) -> None:
    broker = start(google, profiles={f"p{n}": {"lifetime": f"{3600 - n}s"} for n in range(10)})
    for n in range(10):
        assert broker.token(f"p{n}").token
    assert (google.count("token"), google.count(MINT), google.tls_connections) == (1, 10, 2)
    assert len({call.connection for call in google.calls_of(MINT)}) == 1


def test_a_connection_that_google_closed_is_made_anew(start: Starter, google: Standin) -> None:
    broker = start(google, profiles={"one": {}, "two": {"lifetime": "30m"}})
    google.script(MINT, Step(close=True))
    assert broker.token("one").token
    assert broker.token("two").token
    assert google.tls_connections == 3
    assert len({call.connection for call in google.calls_of(MINT)}) == 2


def test_google_back_after_a_restart_is_found(broker: Broker, google: Standin) -> None:
    """kube2iam#78: an outage upstream ends by itself."""
    google.stop()
    text, ref = explanation(broker.token())
    assert text == TEMPORARY and "reason=connect" in assert_reported(broker, ref)
    google.start()
    broker.until_token()


def test_another_authority_is_not_trusted(start: Starter, google: Standin) -> None:
    other = make_authority(google.directory / "other")
    broker = start(google, endpoints={"ca_file": other.ca_file})
    reply = broker.token()
    text, ref = explanation(reply)
    assert (reply.status, text) == (503, TEMPORARY)
    line = assert_reported(broker, ref)
    assert "reason=certificate" in line and "ca_file" in line
    # its side of the handshake may end later
    eventually("the alert", lambda: google.tls_failures == 1)
    assert google.calls == []


def test_without_a_ca_file_the_systems_authorities_count(start: Starter, google: Standin) -> None:
    broker = start(google, endpoints={"ca_file": None})
    assert broker.token().status == 503
    broker.wait_for_log("reason=certificate")
    assert google.calls == []


@pytest.mark.parametrize("host, reason", [("127.0.0.1", "broken"), ("127.0.0.2", "certificate")])
def test_a_name_that_is_not_the_certificates_is_not_trusted(
        start: Starter, google: Standin, tmp_path: Path, host: str, reason: str) -> None:
    """A server that closes behind the handshake: with its own name, it comes so far."""
    authority = make_authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.cert_file, authority.key_file)
    with socket.create_server((host, 0)) as listener:
        listener.settimeout(10)
        url = f"https://{host}:{listener.getsockname()[1]}"
        broker = start(google, endpoints={"oauth2": url, "ca_file": authority.ca_file})
        with broker.client() as client:
            client.send(request(TOKEN))
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                context.wrap_socket(connection, server_side=True).close()
            _, ref = explanation(client.read())
    assert f"reason={reason} " in assert_reported(broker, ref)
    assert google.calls == []


def test_the_environments_proxy_never_counts_for_loopback(start: Starter,
                                                          google: Standin) -> None:
    proxy = "http://127.0.0.1:9"
    broker = start(google, env={name: proxy for name in (
        "https_proxy", "HTTPS_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")})
    assert broker.token().token


def test_the_environments_proxy_counts_for_others(start: Starter, google: Standin) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.settimeout(10)
        url = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        broker = start(google, env={"https_proxy": url},
                       endpoints={"oauth2": "https://oauth2.postern.test"})
        with broker.client() as client:
            client.send(request(TOKEN))
            connection, _ = proxy.accept()
            with connection:
                connection.settimeout(10)
                asked = connection.recv(65536)
            assert asked.startswith(b"CONNECT oauth2.postern.test:443 HTTP/1.1\r\n")
            assert client.read().status == 503


@contextlib.contextmanager
def mute(first: bytes = b"") -> Iterator[str]:
    """A server that accepts, says these bytes and then nothing; gives its https URL."""
    held: list[socket.socket] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
                connection.sendall(first)
            except OSError:
                return
            held.append(connection)
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)
        for each in held:
            each.close()


# What a server says before it falls silent: nothing, and the beginning of a handshake.
GREETINGS = [b"", b"\x16", b"\x16\x03\x03\x00\x7a", b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03"]


def test_a_handshake_that_hangs_holds_up_nobody(start: Starter, google: Standin) -> None:
    with contextlib.ExitStack() as stack:
        urls = [stack.enter_context(mute(greeting)) for greeting in GREETINGS]
        brokers = [start(google, broker=OPEN, endpoints={"oauth2": url}) for url in urls]
        clients = [stack.enter_context(broker.client()) for broker in brokers]
        for client in clients:
            client.send(request(TOKEN))
        for broker in brokers:
            assert_quick(broker.address(), 100)
        assert {client.read().status for client in clients} == {503}
        for broker in brokers:
            assert broker.stop() == 0  # with the call still under way


def test_what_is_no_tls_is_503(start: Starter, google: Standin) -> None:
    with mute(b"HTTP/1.1 400 Bad Request\r\n\r\n") as url:
        broker = start(google, endpoints={"oauth2": url})
        text, ref = explanation(broker.token())
        assert text == TEMPORARY and "reason=tls" in assert_reported(broker, ref)


# Bytes of the answer after which Google falls silent; all of it has 538.
SILENCES = [0, 1, 8, 9, 12, 15, 17, 40, 100, 200, 250, 300, 350, 400, 450, 500, 537]


def test_a_google_that_hangs_at_any_byte_holds_up_nobody(start: Starter, google: Standin) -> None:
    """All of them at once: `/` is answered within 5 ms all the while."""
    broker = start(google, broker=OPEN,
                   profiles={f"p{n}": {"lifetime": f"{3600 - n}s"} for n in SILENCES})
    google.script(MINT, *(Step(hang_at=n) for n in SILENCES))
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(broker.client(profile)) for profile in broker.endpoints]
        for client in clients:
            client.send(request(TOKEN))
        google.wait_for(MINT, len(SILENCES), answered=True)
        assert_quick(broker.address(), 400)
        assert google.waiting(MINT) == len(SILENCES)
        assert {client.read().status for client in clients} == {503}
        google.release(MINT)
        for profile in broker.endpoints:
            broker.until_token(profile)
    assert google.count(MINT) == len(SILENCES)


def test_a_login_that_hangs_at_any_byte_holds_up_nobody(start: Starter, google: Standin) -> None:
    silences = SILENCES[::4]
    brokers = [start(google, broker=OPEN) for _ in silences]
    google.script("token", *(Step(hang_at=n) for n in silences))
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(broker.client()) for broker in brokers]
        for client in clients:
            client.send(request(TOKEN))
        google.wait_for("token", len(silences), answered=True)
        for broker in brokers:
            assert_quick(broker.address(), 100)
        assert {client.read().status for client in clients} == {503}
        google.release("token")
        for broker in brokers:
            broker.until_token()
