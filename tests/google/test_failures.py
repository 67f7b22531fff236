# SPDX-License-Identifier: Apache-2.0
"""Scripted failures happen on the wire, calls are recorded, and the wire holds."""

from __future__ import annotations

import datetime
import http.client
import json
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from .client import ASK, DEADLINE_S, GEMINI, MINT, Reply, assertion, connect, mint, post, refresh
from .script import Step
from .standin import Standin
from .state import CLOUD_PLATFORM

ROOT = Path(__file__).resolve().parents[2]


# the script


def test_steps_apply_in_order_and_then_the_normal_answer_returns(google: Standin) -> None:
    google.script("generateAccessToken", Step(status=503, retry_after=7), {"status": 429},
                  Step(reason="SERVICE_DISABLED"), Step(html=True), Step(body="{", status=200),
                  Step(redirect="https://127.0.0.1:1/"), Step(missing="expireTime"))
    first = mint(google)
    assert (first.status, first.error["status"]) == (503, "UNAVAILABLE")
    assert first.headers["Retry-After"] == "7"
    assert mint(google).error["status"] == "RESOURCE_EXHAUSTED"
    disabled = mint(google)
    assert (disabled.status, disabled.reason) == (403, "SERVICE_DISABLED")
    page = mint(google)
    assert page.status == 502 and page.headers["Content-Type"].startswith("text/html")
    assert mint(google).body == b"{"
    moved = mint(google)
    assert (moved.status, moved.headers["Location"]) == (302, "https://127.0.0.1:1/")
    assert set(mint(google).json) == {"accessToken"}
    assert mint(google).status == 200 and google.pending("generateAccessToken") == 0
    assert [call.status for call in google.calls] == [503, 429, 403, 502, 200, 302, 200, 200]


def test_the_token_endpoint_fails_in_its_own_envelope(google: Standin) -> None:
    google.script("token", Step(oauth_error="invalid_grant", error_subtype="invalid_rapt"),
                  Step(status=503), Step(expires_in="3599"), Step(missing=["expires_in"]))
    reply = refresh(google)
    assert (reply.status, reply.json["error"]) == (400, "invalid_grant")
    assert reply.json["error_subtype"] == "invalid_rapt"
    reply = refresh(google)
    assert (reply.status, reply.json["error"]) == (503, "temporarily_unavailable")
    assert refresh(google).json["expires_in"] == "3599"
    assert "expires_in" not in refresh(google).json
    with pytest.raises(ValueError):
        google.script("token", {"statsu": 500})
    with pytest.raises(ValueError):
        google.script("tokens", Step(status=500))


@pytest.mark.parametrize("digits", range(10))
def test_the_expiry_is_written_as_asked(google: Standin, digits: int) -> None:
    google.script("generateAccessToken", Step(fraction_digits=digits, offset="+05:30",
                                              life_s=1000))
    text = mint(google).json["expireTime"]
    fraction = rf"\.\d{{{digits}}}" if digits else ""
    assert re.fullmatch(rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d{fraction}\+05:30", text)
    whole = datetime.datetime.fromisoformat(text[:19] + "+05:30").timestamp()
    assert abs(whole - google.state.now_s() - 1000) < 5


def test_literals_sizes_and_a_missing_date(google: Standin) -> None:
    google.script("generateAccessToken", Step(expire_time="yesterday"), Step(big_body=300_000),
                  Step(no_date=True, content_type="text/plain"), Step(token_bytes=8000))
    assert mint(google).json["expireTime"] == "yesterday"
    assert len(mint(google).body) == 300_000
    reply = mint(google)
    assert reply.headers["Date"] is None and reply.headers["Content-Type"] == "text/plain"
    assert len(mint(google).json["accessToken"]) == 8000


def test_a_short_life_is_real_and_a_shifted_clock_shows(google: Standin) -> None:
    google.script("generateAccessToken", Step(life_s=0))
    token = mint(google).json["accessToken"]
    assert post(google, f"{GEMINI}:generateContent", ASK, token).status == 401
    google.clock_offset_s = -86400
    date = http.client.HTTPMessage()
    date["Date"] = mint(google).headers["Date"]
    then = datetime.datetime.strptime(date["Date"], "%a, %d %b %Y %H:%M:%S GMT")
    then = then.replace(tzinfo=datetime.timezone.utc)
    assert abs(then.timestamp() + 86400 - time.time()) < 5


def test_a_cut_body_is_shorter_than_promised(google: Standin) -> None:
    google.always("generateAccessToken", Step(truncate_at=20))
    for _ in range(2):
        with pytest.raises(http.client.IncompleteRead) as caught:
            mint(google)
        assert len(caught.value.partial) == 20
    google.clear("generateAccessToken")
    assert mint(google).status == 200


def test_a_reset_is_a_reset(google: Standin) -> None:
    google.script("generateAccessToken", Step(reset=True))
    with socket.create_connection(("127.0.0.1", google.http_port), DEADLINE_S) as sock:
        sock.sendall(f"POST {MINT} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode())
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
    assert google.calls[-1].outcome == "reset" and google.calls[-1].status is None


def test_a_hang_ends_when_it_is_released(google: Standin) -> None:
    google.script("generateAccessToken", Step(hang_at=0), Step(hang_at=25))
    connection = connect(google)
    for n in (1, 2):
        connection.request("POST", MINT, json.dumps({"scope": [CLOUD_PLATFORM]}), {
            "Authorization": f"Bearer {google.issue_source_token()}",
            "Content-Type": "application/json"})
        google.wait_for("generateAccessToken", n)
        assert google.waiting("generateAccessToken") == 1
        google.release("generateAccessToken")
        assert Reply(connection.getresponse()).status == 200
    connection.close()
    assert len({call.connection for call in google.calls}) == 1


def test_held_requests_wait_for_their_release(google: Standin) -> None:
    google.hold("generateAccessToken")
    replies: list[int] = []
    threads = [threading.Thread(target=lambda: replies.append(mint(google).status))
               for _ in range(3)]
    for thread in threads:
        thread.start()
    calls = google.wait_for("generateAccessToken", 3)
    assert not replies and all(call.status is None for call in calls)
    google.release("generateAccessToken", 1)
    google.wait_for("generateAccessToken", 1, answered=True)
    google.release("generateAccessToken")
    for thread in threads:
        thread.join(DEADLINE_S)
    assert replies == [200, 200, 200]
    with pytest.raises(TimeoutError):
        google.wait_for("generateAccessToken", 4, timeout=0)


# the record, the files, the wire


def test_calls_are_recorded_and_secrets_known(google: Standin) -> None:
    before = google.tls_connections
    source = refresh(google).json["access_token"]
    minted = mint(google, source).json["accessToken"]
    signed = assertion(google)
    google.script("generateAccessToken", Step(status=503))
    mint(google, signed)
    token, mints = google.calls[0], google.calls_of("generateAccessToken")
    assert token.body["grant_type"] == "refresh_token" and token.status == 200
    assert mints[0].body["scope"] == [CLOUD_PLATFORM] and mints[0].path == MINT
    assert mints[0].headers["authorization"] == f"Bearer {source}"
    assert google.count("generateAccessToken") == 2 and google.tls_connections == before + 3
    info, key = google.adc(), google.service_account_key()["private_key"]
    assert {source, minted, signed, info["refresh_token"], info["client_secret"], key,
            key.splitlines()[1]} <= google.secrets()


def test_credential_files_are_private(google: Standin, tmp_path: Path) -> None:
    adc = google.write_adc(tmp_path / "adc.json", quota_project_id="p")
    account = google.write_service_account(tmp_path / "sa.json")
    for path, kind in ((adc, "authorized_user"), (account, "service_account")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert json.loads(path.read_text())["type"] == kind
    assert json.loads(adc.read_text())["quota_project_id"] == "p"


def test_a_client_that_does_not_know_the_authority_is_counted(google: Standin) -> None:
    before = google.tls_failures
    with pytest.raises(ssl.SSLCertVerificationError):
        with socket.create_connection(("127.0.0.1", google.port), DEADLINE_S) as sock:
            ssl.create_default_context().wrap_socket(sock, server_hostname="localhost")
    deadline = time.monotonic() + DEADLINE_S
    while google.tls_failures == before:
        assert time.monotonic() < deadline


@pytest.mark.parametrize("raw, status", [
    (b"POST /token HTTP/1.1\r\nHost: x\r\n\r\n", 411),
    (b"GET / HTTP/1.1\r\n\r\n", 400),
    (b"nonsense\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 404),
    (b"GET / HTTP/1.0\r\n\r\n", 404),
])
def test_the_wire_is_strict(google: Standin, raw: bytes, status: int) -> None:
    with socket.create_connection(("127.0.0.1", google.http_port), DEADLINE_S) as sock:
        sock.sendall(raw)
        assert sock.recv(65536).startswith(b"HTTP/1.1 %d " % status)


def test_a_host_of_clients_is_served_and_vanishing_ones_do_no_harm(
        google: Standin, capfd: pytest.CaptureFixture[str]) -> None:
    source = google.issue_source_token()
    google.hold("generateAccessToken")
    vanishing = [connect(google) for _ in range(16)]
    for connection in vanishing:
        connection.request("POST", MINT, "{}", {"Authorization": f"Bearer {source}"})
    replies: list[int] = []
    threads = [threading.Thread(target=lambda: replies.append(mint(google, source).status))
               for _ in range(64)]
    for thread in threads:
        thread.start()
    google.wait_for("generateAccessToken", 80)
    for connection in vanishing:
        connection.close()
    google.release("generateAccessToken")
    for thread in threads:
        thread.join(DEADLINE_S)
    assert replies == [200] * 64
    google.wait_for("generateAccessToken", 80, answered=True)
    assert not google.faults and capfd.readouterr().err == ""


def test_it_stops_and_starts_on_the_same_port_with_the_same_memory() -> None:
    with Standin() as google:
        port, token = google.port, google.issue_source_token()
        google.hold("token")
        held = connect(google)
        held.request("POST", "/token", "x")
        google.wait_for("token", 1)
        google.stop()
        with pytest.raises((http.client.HTTPException, OSError)):
            held.getresponse()
        held.close()
        with pytest.raises(ConnectionRefusedError):
            mint(google, token)
        google.start()
        assert google.port == port and mint(google, token).status == 200


def test_it_runs_as_a_process(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-m", "tests.google", "--dir", str(tmp_path)],
                               cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready url=https://127.0.0.1:")
        about = json.loads((tmp_path / "standin.json").read_text())
        adc = json.loads((tmp_path / "adc.json").read_text())
        plain = http.client.HTTPConnection("127.0.0.1", about["http_port"], timeout=DEADLINE_S)

        def call(method: str, path: str, body: Any = None) -> Reply:
            plain.request(method, path, None if body is None else json.dumps(body))
            return Reply(plain.getresponse())
        for step, status in (({"status": 503}, 200), ({"x": 1}, 400)):
            asked = {"kind": "token", "steps": [step]}
            assert call("POST", "/_/script", asked).status == status
        fields = {"grant_type": "refresh_token", **{
            name: adc[name] for name in ("client_id", "client_secret", "refresh_token")}}
        for status in (503, 200):
            plain.request("POST", "/token", urlencode(fields),
                          {"Content-Type": "application/x-www-form-urlencoded"})
            assert Reply(plain.getresponse()).status == status
        assert call("POST", "/_/clock", {"offset_s": 60}).json["clock_offset_s"] == 60
        assert call("POST", "/_/clear", {}).status == 200
        calls = call("GET", "/_/calls?kind=token").json["calls"]
        assert [c["status"] for c in calls] == [503, 200] and not calls[0]["tls"]
        assert adc["refresh_token"] in call("GET", "/_/secrets").json["secrets"]
        assert call("GET", "/_/nothing").status == 404
        plain.close()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=DEADLINE_S)
        assert (process.returncode, out, err) == (0, "", "")
    finally:
        process.kill()
        process.wait()
