# SPDX-License-Identifier: Apache-2.0
"""The route table of the contract, section 4, as bytes on a connection."""

from __future__ import annotations

import contextlib
import email.utils
import json
import subprocess
import time
from typing import Any

import pytest

from tests.google.standin import ACCOUNT, PROJECT, Standin
from tests.google.state import CLOUD_PLATFORM

from .broker import Broker
from .conftest import Starter
from .deadline import eventually
from .http1 import ACCOUNTS, TOKEN, Broken, Client, Reply, request
from .microhttpd import IS_STRICT

OFFLINE = {"broker": {"endpoint_rate": 0}, "profiles": {"vertex": {"project_number": 123456789012}}}

V1 = "/computeMetadata/v1"
TEXT, JSON = "application/text", "application/json"
INFO = {"aliases": ["default"], "email": ACCOUNT, "scopes": [CLOUD_PLATFORM]}
ESCAPED = ACCOUNT.replace("@", "%40")

# path without its final slash, body
DIRECTORIES = [
    ("", "computeMetadata/\n"),
    ("/computeMetadata", "v1/\n"),
    (V1, "instance/\nproject/\nuniverse/\n"),
    (f"{V1}/instance", "service-accounts/\n"),
    (f"{V1}/project", None),
    (f"{V1}/universe", "universe-domain\n"),
    (ACCOUNTS, f"default/\n{ACCOUNT}/\n"),
    (f"{ACCOUNTS}/default", "aliases\nemail\nscopes\ntoken\n"),
    (f"{ACCOUNTS}/{ACCOUNT}", "aliases\nemail\nscopes\ntoken\n"),
    (f"{ACCOUNTS}/{ESCAPED}", "aliases\nemail\nscopes\ntoken\n"),
]
LEAVES = [
    (f"{V1}/project/project-id", PROJECT),
    (f"{V1}/project/numeric-project-id", "123456789012"),
    (f"{V1}/universe/universe-domain", "googleapis.com"),
    *((f"{ACCOUNTS}/{account}/{leaf}", body) for account in ("default", ACCOUNT, ESCAPED)
      for leaf, body in (("email", ACCOUNT), ("aliases", "default\n"),
                         ("scopes", f"{CLOUD_PLATFORM}\n"))),
]
NEVER = [
    f"{V1}/instance/attributes/", f"{V1}/instance/attributes/kube-env", f"{V1}/instance/id",
    f"{V1}/instance/zone", f"{V1}/instance/hostname", f"{V1}/instance/name",
    f"{V1}/instance/disks/", f"{V1}/instance/network-interfaces/", f"{ACCOUNTS}/default/identity",
    f"{ACCOUNTS}/other@my-project.iam.gserviceaccount.com/token", "/0.1/meta-data/",
    "/computeMetadata/v1beta1/", "//computeMetadata/v1/", f"{V1}/project/project-id/",
    f"{V1}/./project/", f"{V1}/instance/../project/", f"{V1}/project%2fproject-id",
    f"{TOKEN}/", f"{TOKEN}%00", "/favicon.ico", "*", "http://localhost/", "/" + "a" * 4096,
]


def assert_common(reply: Reply) -> None:
    """The headers of every answer (gcp-metadata#215 and #657, aws-mock-metadata#3)."""
    assert reply.header("Metadata-Flavor") == "Google"
    assert reply.header("Server") == "Metadata Server for VM"
    assert reply.header("X-XSS-Protection") == "0"
    assert reply.header("X-Frame-Options") == "SAMEORIGIN"
    assert reply.header("Content-Type")
    assert reply.header("Content-Length") is not None
    assert reply.header("Transfer-Encoding") is None
    date = email.utils.parsedate_to_datetime(reply.header("Date") or "")
    assert abs(date.timestamp() - time.time()) < 10
    assert (reply.header("Date") or "").endswith(" GMT")


@pytest.mark.parametrize("path, body", DIRECTORIES)
@pytest.mark.parametrize("slash", ["", "/"])
def test_a_directory_answers_with_and_without_its_slash(offline: Broker, path: str,
                                                        body: str | None, slash: str) -> None:
    """scion#1433, gke-metadata-server#501, hail#14566: `/`, `instance`, `service-accounts`."""
    reply = offline.get(path + slash or "/")
    assert reply.status == 200 and reply.header("Content-Type") == TEXT
    assert_common(reply)
    if body is None:  # with project_number it has two entries
        assert sorted(reply.text.splitlines()) == ["numeric-project-id", "project-id"]
    else:
        assert reply.text == body


@pytest.mark.parametrize("path, body", LEAVES)
def test_a_leaf_is_its_value(offline: Broker, path: str, body: str) -> None:
    """google-cloud-java#2821: an id is the id, nothing around it."""
    reply = offline.get(path)
    assert (reply.status, reply.text) == (200, body)
    assert reply.header("Content-Type") == TEXT
    assert_common(reply)


@pytest.mark.parametrize("account", ["default", ACCOUNT, ESCAPED])
@pytest.mark.parametrize("value", ["true", "True", "TRUE"])
def test_an_account_is_json_with_recursive(offline: Broker, account: str, value: str) -> None:
    """google-auth-library-python#745: that very URL. mesozoic-labs#187: its content type."""
    reply = offline.get(f"{ACCOUNTS}/{account}/?recursive={value}")
    assert reply.status == 200 and reply.header("Content-Type") == JSON
    assert reply.json == INFO
    assert_common(reply)


def test_higher_directories_are_json_with_recursive_and_hold_no_token(offline: Broker) -> None:
    accounts = {"default": INFO, ACCOUNT: INFO}
    assert offline.get(f"{ACCOUNTS}/?recursive=true").json == accounts
    whole = offline.get(f"{V1}/?recursive=true")
    assert whole.json["instance"] == {"serviceAccounts": accounts}
    assert whole.json["project"]["projectId"] == PROJECT
    assert whole.json["universe"] == {"universeDomain": "googleapis.com"}
    assert whole.header("Content-Type") == JSON and b"access_token" not in whole.body


def test_alt_json_makes_a_leaf_json(offline: Broker) -> None:
    """kubernetes#28871: scopes?alt=json."""
    assert offline.get(f"{ACCOUNTS}/default/scopes?alt=json").json == [CLOUD_PLATFORM]
    assert offline.get(f"{ACCOUNTS}/default/email?alt=json").json == ACCOUNT


def test_the_token_is_json_without_a_charset(offline: Broker) -> None:
    """Ruby takes an application/text answer for the token itself."""
    reply = offline.token()
    assert reply.token and reply.header("Content-Type") == JSON
    assert_common(reply)
    assert json.loads(reply.body)["expires_in"] <= 3600


def test_a_long_query_changes_nothing(offline: Broker) -> None:
    """k8s-config-connector#247: many encoded scopes; the profile's are what counts."""
    scopes = "%2C".join(f"https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fs{n}" for n in range(100))
    assert len(scopes) > 4000
    reply = offline.get(f"{TOKEN}?scopes={scopes}&alt=json&bindCertificateFingerprint=x&..//%00")
    assert reply.token == offline.token().token


@pytest.mark.parametrize("path", NEVER, ids=lambda path: path[:60])
def test_what_is_not_in_the_table_does_not_exist(offline: Broker, path: str) -> None:
    """gcloud lives with a 404 of `identity` only; gcloud-sdk-rs#154: // stays 404."""
    reply, unknown = offline.get(path), offline.get("/unknown")
    assert (reply.status, reply.text) == (404, "Not Found.\n")
    assert reply.header("Content-Type") == "text/plain"
    assert_common(reply)
    assert {**dict(reply.headers), "Date": ""} == {**dict(unknown.headers), "Date": ""}


REFUSALS = [
    ({"flavor": False}, 403, "Missing Metadata-Flavor:Google header.\n"),
    ({"flavor": False, "headers": [("Metadata-Flavor", "google")]}, 403,
     "Missing Metadata-Flavor:Google header.\n"),
    ({"headers": [("metadata-flavor", "Google")]}, 403, "Missing Metadata-Flavor:Google header.\n"),
    ({"headers": [("X-Forwarded-For", "")]}, 403, "Request with X-Forwarded-For is not allowed.\n"),
    ({"headers": [("x-forwarded-for", "127.0.0.1")], "host": "evil.example", "flavor": False}, 403,
     "Request with X-Forwarded-For is not allowed.\n"),
    ({"host": "evil.example"}, 403, "Host is not this server's.\n"),
    ({"host": "127.0.0.1.evil.example"}, 403, "Host is not this server's.\n"),
    ({"host": "127.0.0.2"}, 403, "Host is not this server's.\n"),
    ({"host": "169.254.169.254"}, 403, "Host is not this server's.\n"),
    ({"host": ""}, 403, "Host is not this server's.\n"),
    ({"headers": [("Host", "localhost")]}, 403, "Host is not this server's.\n"),
]


@pytest.mark.parametrize("how, status, body", REFUSALS)
@pytest.mark.parametrize("target", ["/", TOKEN, "/unknown"])
def test_a_guard_refuses_before_the_path_counts(offline: Broker, target: str, how: dict[str, Any],
                                                status: int, body: str) -> None:
    """aws-vault#578 (DNS rebinding), kube2iam#241 (forwarded), google-auth-library-java#282."""
    reply = offline.get(target, **how)
    assert (reply.status, reply.text) == (status, body)
    assert reply.header("Content-Type") == "text/plain"
    assert_common(reply)


@pytest.mark.parametrize("host", [
    "localhost", "LOCALHOST", "localhost.", "localhost:1", "metadata", "metadata.google.internal",
    "metadata.google.internal.:80", "host.containers.internal", "host.docker.internal",
    "127.0.0.1", "127.0.0.1:8174",
])
def test_every_name_of_the_endpoint_is_a_host(offline: Broker, host: str) -> None:
    assert offline.get("/", host=host).status == 200


def test_no_host_is_refused(offline: Broker) -> None:
    """libmicrohttpd 1.0 answers this one itself."""
    assert offline.get(TOKEN, host=None).status in (400, 403)
    assert offline.get(TOKEN, host=None, version="1.0").status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "FOO"])
def test_other_methods_are_refused(offline: Broker, method: str) -> None:
    reply = offline.get("/", method=method)
    assert (reply.status, reply.text) == (405, "Method Not Allowed.\n")
    assert reply.header("Allow") == "GET, HEAD"
    assert_common(reply)
    assert offline.get("/unknown", method=method).status == 404


@pytest.mark.parametrize("target", ["/", TOKEN, f"{V1}/project/project-id", "/unknown"])
def test_head_is_get_without_the_body(offline: Broker, target: str) -> None:
    with offline.client() as client:
        got = client.ask(target)
        head = client.ask(target, method="HEAD")
        assert head.status == got.status and head.body == b""
        assert head.header("Content-Type") == got.header("Content-Type")
        assert abs(int(head.header("Content-Length") or 0) - len(got.body)) <= 1  # expires_in
        assert_common(head)
        assert client.ask("/").text == "computeMetadata/\n"  # nothing was left in between


def test_http_1_0_is_answered_and_closed(offline: Broker) -> None:
    with offline.client() as client:
        reply = client.ask("/", version="1.0")
        assert reply.status == 200 and reply.text == "computeMetadata/\n"
        assert_common(reply)
        assert client.rest() == b""


def test_a_connection_is_kept(offline: Broker) -> None:
    with offline.client() as client:
        for target in ("/", TOKEN, "/unknown", "/", ACCOUNTS) * 10:
            reply = client.ask(target)
            assert reply.status == (404 if target == "/unknown" else 200)
            assert reply.header("Connection") in (None, "keep-alive", "Keep-Alive")


def test_a_refusal_keeps_the_connection(offline: Broker) -> None:
    with offline.client() as client:
        for how in ({"flavor": False}, {"host": "evil.example"}, {"method": "POST"}):
            assert client.ask("/", **how).status in (403, 405)
        assert client.ask("/").status == 200


def test_connection_close_is_obeyed(offline: Broker) -> None:
    with offline.client() as client:
        assert client.ask("/", headers=[("Connection", "close")]).status == 200
        assert client.rest() == b""


def test_pipelined_requests_are_answered_in_order(offline: Broker) -> None:
    targets = ["/", TOKEN, f"{V1}/project/project-id", "/unknown"] * 10
    alone = {target: offline.get(target).status for target in targets}
    with offline.client() as client:
        client.send(b"".join(request(target) for target in targets))
        replies = [client.read() for _ in targets]
    assert [reply.status for reply in replies] == [alone[target] for target in targets]
    assert {reply.text for reply in replies[2::4]} == {PROJECT}


@pytest.mark.real_time
def test_pipelined_requests_behind_one_that_waits_keep_their_order(broker: Broker,
                                                                   google: Standin) -> None:
    google.hold("generateAccessToken")
    with broker.client() as client:
        client.send(request(TOKEN) + request("/"))
        google.wait_for("generateAccessToken")
        assert client.is_silent()
        google.release("generateAccessToken")
        assert client.read().token
        assert client.read().text == "computeMetadata/\n"


def test_an_empty_line_before_a_request_is_nothing(offline: Broker) -> None:
    """RFC 9112, section 2.2: at least one; the newer libmicrohttpd takes no more."""
    with offline.client() as client:
        client.send(b"\r\n" + request("/"))
        assert client.read().status == 200


def test_more_of_them_are_nothing_or_to_the_strict_the_end(offline: Broker) -> None:
    with offline.client() as client:
        client.send(b"\r\n" * 3 + request("/"))
        client.half_close()
        raw = client.rest()
    assert raw == b"" if IS_STRICT else raw.startswith(b"HTTP/1.1 200 OK\r\n")


def test_who_half_closes_after_a_whole_request_gets_the_answer(offline: Broker) -> None:
    for target in ("/", TOKEN):
        with offline.client() as client:
            client.send(request(target))
            client.half_close()
            assert client.read().status == 200
            assert client.rest() == b""


@pytest.mark.real_time
def test_who_half_closes_while_the_token_is_made_gets_it(broker: Broker, google: Standin) -> None:
    google.hold("generateAccessToken")
    with broker.client() as client:
        client.send(request(TOKEN))
        client.half_close()
        google.wait_for("generateAccessToken")
        assert client.is_silent()
        google.release("generateAccessToken")
        assert client.read().token


def assert_whole(reply: Reply) -> None:
    assert reply.status == 200 and reply.text == PROJECT
    assert_common(reply)


def test_a_request_may_come_in_two_parts_wherever_it_is_cut(offline: Broker) -> None:
    whole = request(f"{V1}/project/project-id?a=b", headers=[("User-Agent", "x/1 (y)"), ("A", "")])
    with offline.client() as client, offline.client() as other:
        for at in range(1, len(whole)):
            client.send(whole[:at])
            assert other.ask("/").status == 200  # by now the first part was read
            client.send(whole[at:])
            assert_whole(client.read())


def test_a_request_may_come_byte_by_byte(offline: Broker) -> None:
    with offline.client() as client, offline.client() as other:
        for byte in request(f"{V1}/project/project-id"):
            client.send(bytes([byte]))
            assert other.ask("/").status == 200
        assert_whole(client.read())


def test_a_request_as_large_as_promised_is_read(offline: Broker) -> None:
    """About 8 KiB of request line and headers; each header costs some more."""
    headers = [(f"X-Padding-{n}", "p" * 900) for n in range(5)]
    whole = request("/?" + "q" * 2300, headers=headers)
    assert 6900 < len(whole) < 7200
    with offline.client() as client:
        for _ in range(3):
            client.send(whole)
            assert client.read().status == 200


@pytest.mark.parametrize("whole", [
    request("/" + "a" * 20000),
    request("/", headers=[("X-Padding", "p" * 20000)]),
    request("/", headers=[(f"X-{n}", "p") for n in range(2000)]),
], ids=["target", "value", "headers"])
def test_a_larger_one_is_refused_and_closed(offline: Broker, whole: bytes) -> None:
    """By libmicrohttpd itself, with 414 or 431."""
    with offline.client() as client:
        with contextlib.suppress(OSError):  # closed while we were still sending
            client.send(whole)
        raw = client.rest()
        assert raw.startswith((b"HTTP/1.1 414 ", b"HTTP/1.1 431 ")) or raw == b""
    assert offline.get("/").status == 200


def test_curl_reads_it(offline: Broker) -> None:
    host, port = offline.address()
    url = f"http://{host}:{port}{V1}/project/project-id"
    done = subprocess.run(["curl", "-sS", "--fail", "-H", "Metadata-Flavor: Google", url, url],
                          capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stdout) == (0, PROJECT * 2), done.stderr


def test_an_ipv6_endpoint_answers(start: Starter) -> None:
    broker = start(profiles={"vertex": {"listen": "[::1]:0"}})
    assert broker.address()[0] == "::1"
    for host in ("[::1]", f"[::1]:{broker.address()[1]}", "localhost"):
        assert broker.get("/", host=host).status == 200
    assert broker.get("/", host="127.0.0.1").status == 403


def test_a_thousand_connections_in_a_row_leave_none_behind(offline: Broker) -> None:
    """kube2iam#363 and kiam#147: nothing piles up."""
    for _ in range(1000):
        with offline.client() as client:
            client.send(request("/"))
            try:
                client.read()
            except Broken as broken:
                raise AssertionError(broken) from None
    address = offline.address()
    open_now = []
    for _ in range(64):  # as many as the endpoint takes
        open_now.append(Client(address))
    try:
        assert eventually("room", lambda: open_now[-1].ask("/").status == 200)
    finally:
        for client in open_now:
            client.close()
