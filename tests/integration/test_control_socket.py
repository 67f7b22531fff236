# SPDX-License-Identifier: Apache-2.0
"""The control socket: its file, its lock, its calls."""

from __future__ import annotations

import datetime
import grp
import os
import re
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest

from tests.google.script import Step
from tests.google.standin import ACCOUNT, PROJECT, Standin

from . import configuration
from .broker import Broker, as_a_user, run
from .conftest import Starter, new_directory
from .deadline import eventually
from .http1 import TOKEN, request

MINT = "generateAccessToken"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def moment(text: str) -> float:
    """An RFC 3339 time in UTC as seconds."""
    assert TIME.fullmatch(text), text
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


# what it says


def test_status_says_what_the_broker_is(start: Starter, google: Standin) -> None:
    broker = start(google, profiles={"vertex": {"location": "europe-west4"},
                                     "quiet": {"listen": None}})
    status = broker.status()
    assert set(status) == {"version", "pid", "started_at", "source", "profiles", "sessions",
                           "counters"}
    assert status["pid"] == broker.pid and re.fullmatch(r"\d+\.\d+\.\d+.*", status["version"])
    assert abs(moment(status["started_at"]) - time.time()) < 30
    assert set(status["source"]) == {"type", "principal", "state", "expires_at"}
    assert (status["source"]["type"], status["source"]["expires_at"]) == ("authorized_user", None)
    assert status["sessions"] == {"open": 0, "limit": 1024}
    assert status["counters"] == dict.fromkeys(
        ("requests", "tokens", "mints", "mint_failures", "refused"), 0)
    vertex, quiet = status["profiles"]
    host, port = broker.address("vertex")
    assert vertex == {"name": "vertex", "backend": "vertex", "service_account": ACCOUNT,
                      "project": PROJECT, "location": "europe-west4", "listen": f"{host}:{port}",
                      "token": None, "last_failure": None, "sessions": 0}
    assert (quiet["name"], quiet["listen"]) == ("quiet", None)


def test_status_follows_a_token(broker: Broker, google: Standin) -> None:
    assert broker.token().token
    status = broker.status()
    token = status["profiles"][0]["token"]
    assert set(token) == {"state", "expires_at", "refresh_at"} and token["state"] == "fresh"
    assert abs(moment(token["expires_at"]) - google.minted[0].expires_ns / 1e9) < 2
    assert abs(moment(token["expires_at"]) - moment(token["refresh_at"]) - 600) < 2
    assert abs(moment(status["source"]["expires_at"]) - time.time() - 3599) < 30
    assert status["counters"] == {"requests": 1, "tokens": 1, "mints": 1, "mint_failures": 0,
                                  "refused": 0}


def test_status_follows_a_failure(broker: Broker, google: Standin) -> None:
    google.always(MINT, Step(status=500))
    ref = re.search(r"ref ([0-9a-f]{8})", broker.token().text)
    assert broker.get("/unknown").status == 404
    status = broker.status()
    failure = status["profiles"][0]["last_failure"]
    assert set(failure) == {"ref", "class", "at"}
    assert ref and (failure["ref"], failure["class"]) == (ref[1], "transient")
    assert abs(moment(failure["at"]) - time.time()) < 30
    counters = status["counters"]
    assert (counters["mints"], counters["mint_failures"], counters["tokens"]) == (1, 1, 0)
    assert (counters["requests"], counters["refused"]) == (2, 2)


def test_health_and_readiness(broker: Broker) -> None:
    """scion#307, kfctl#48: on a socket of its own, whatever Google does."""
    for target in ("/healthz", "/readyz", "/healthz?x=y"):
        reply = broker.control(target)
        assert reply.status == 200 and reply.header("Content-Type") == "text/plain"
        assert broker.control(target, "HEAD").body == b""


def test_metrics_are_prometheus_text_of_closed_sets(broker: Broker) -> None:
    assert broker.token().token
    for target in ("/unknown", "/a/client/chose/this"):
        assert broker.get(target).status == 404
    reply = broker.control("/metrics")
    assert reply.status == 200
    assert (reply.header("Content-Type") or "").startswith("text/plain; version=0.0.4")
    sample = re.compile(r'(postern_[a-z_]+)(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? -?[0-9.e+-]+')
    values = {}
    for line in reply.text.splitlines():
        if not line.startswith("#"):
            match = sample.fullmatch(line)
            assert match, line
            values[line.rpartition(" ")[0]] = float(line.rpartition(" ")[2])
    assert values['postern_requests_total{profile="vertex",route="token",code="200"}'] == 1
    assert values['postern_tokens_served_total{profile="vertex"}'] == 1
    assert values['postern_mints_total{profile="vertex",result="ok"}'] == 1
    assert values["postern_mint_seconds_count"] == 1 and values["postern_sessions"] == 0
    assert 3500 < values['postern_token_expiry_seconds{profile="vertex"}'] <= 3600
    assert values['postern_refused_total{profile="vertex",reason="path"}'] == 2
    assert any(name.startswith("postern_build_info{") for name in values)
    assert "chose" not in reply.text


@pytest.mark.parametrize("target", ["/", "/v1", "/v1/status/", "/v1/", "//healthz", "/healthz/",
                                    TOKEN, "/v1/status%00", "/healthz%2f", "*"])
def test_an_unknown_path_is_an_error_in_json(broker: Broker, target: str) -> None:
    reply = broker.control(target)
    assert reply.status == 404 and reply.header("Content-Type") == "application/json"
    error = reply.json["error"]
    assert set(reply.json) == {"error"} and set(error) == {"code", "message"}
    assert broker.wait_for_audit("control.refuse", status=404, uid=os.getuid(), pid=os.getpid())


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_refused(broker: Broker, method: str) -> None:
    reply = broker.control("/v1/status", method)
    assert reply.status == 405 and reply.json["error"]["code"] == "bad_request"
    assert broker.status()


def test_a_body_is_refused_where_none_belongs(broker: Broker) -> None:
    with broker.control_client() as client:
        client.send(request("/v1/status", method="GET", host="postern", flavor=False,
                            headers=[("Content-Length", "5")], body=b"hello"))
        assert client.read().status in (400, 413)
    assert broker.status()


def test_a_connection_is_kept(broker: Broker) -> None:
    with broker.control_client() as client:
        for _ in range(20):
            assert client.ask("/healthz", host="postern", flavor=False).status == 200


def test_curl_speaks_to_it(broker: Broker) -> None:
    for path, part in (("v1/status", '"profiles"'), ("healthz", "ok")):
        done = subprocess.run(
            ["curl", "-sS", "--fail", "--unix-socket", broker.control_path,
             f"http://postern/{path}"], capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 0 and part in done.stdout, done.stderr


def test_a_hundred_clients_are_served(broker: Broker) -> None:
    clients = [broker.control_client() for _ in range(60)]
    try:
        for client in clients:
            client.send(request("/v1/status", host="postern", flavor=False))
        assert {client.read().status for client in clients} == {200}
    finally:
        for client in clients:
            client.close()


# its file


def test_its_modes_do_not_depend_on_the_umask(artifacts: Path) -> None:
    for umask in (0o000, 0o077, 0o277):
        directory = new_directory(artifacts, "modes")
        place = directory / "run" / "control.sock"
        with Broker(directory, umask=umask, broker={"control_socket": place}) as broker:
            assert stat.S_IMODE(place.stat().st_mode) in (0o600, 0o660)
            assert stat.S_IMODE(place.parent.stat().st_mode) == 0o755
            assert stat.S_IMODE(Path(f"{place}.lock").stat().st_mode) == 0o600
            assert broker.control("/healthz").status == 200


def own_group() -> str:
    """A group that this user may give files to."""
    return grp.getgrgid(os.getgid()).gr_name


def test_a_group_that_is_there_gets_it(start: Starter) -> None:
    broker = start(broker={"control_group": own_group()})
    status = Path(broker.control_path).stat()
    assert (stat.S_IMODE(status.st_mode), status.st_gid) == (0o660, os.getgid())


def test_the_default_group_may_be_missing(broker: Broker) -> None:
    try:
        grp.getgrnam("postern")
    except KeyError:
        assert stat.S_IMODE(Path(broker.control_path).stat().st_mode) == 0o600
        assert re.search(r"^warning: .*postern", broker.log, re.M)
    else:
        assert stat.S_IMODE(Path(broker.control_path).stat().st_mode) in (0o600, 0o660)


def test_a_group_that_was_asked_for_must_be_there(directory: Path) -> None:
    sections = configuration.sections(directory, None,
                                      broker={"control_group": "no-such-group"})
    (directory / "postern.conf").write_text(configuration.render(sections))
    done = run("--config", directory / "postern.conf", home=directory)
    assert done.returncode == 2 and "no-such-group" in done.stderr
    assert not (directory / "control.sock").exists()


def test_the_socket_goes_with_the_broker(broker: Broker) -> None:
    assert broker.stop() == 0
    assert not Path(broker.control_path).exists()


# one broker a path


def test_a_second_broker_is_refused(broker: Broker, artifacts: Path) -> None:
    other = new_directory(artifacts, "second")
    sections = configuration.sections(other, None,
                                      broker={"control_socket": broker.control_path})
    (other / "postern.conf").write_text(configuration.render(sections))
    done = run("--config", other / "postern.conf", home=other)
    assert done.returncode == 2 and done.stdout == ""
    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(errors) == 1 and broker.control_path in errors[0], done.stderr
    assert "another posternd" in errors[0] and "--control" in errors[0]
    assert broker.control("/healthz").status == 200


def test_a_second_broker_of_the_same_file_is_refused(start: Starter) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    broker = start(profiles={"vertex": {"listen": f"127.0.0.1:{port}"}})
    done = run("--config", broker.config_file, home=broker.directory)
    assert done.returncode == 2 and done.stdout == ""
    assert broker.get("/").status == 200 and broker.control("/healthz").status == 200


def test_what_a_killed_broker_leaves_is_no_hindrance(start: Starter) -> None:
    """The socket's file and the lock's; devops-bench and kube2iam#127: nothing to clean by hand."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    broker = start(profiles={"vertex": {"listen": f"127.0.0.1:{port}"}})
    for _ in range(3):
        with broker.client() as client:
            assert client.ask(TOKEN).token  # a connection that dies with it
            broker.kill()
        assert Path(broker.control_path).exists()
        broker.start()
    assert broker.address() == ("127.0.0.1", port) and broker.status()["pid"] == broker.pid


def test_the_lock_alone_decides(directory: Path) -> None:
    """Left-over files without a broker behind them say nothing."""
    (directory / "control.sock.lock").write_text("")
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(str(directory / "control.sock"))
    with Broker(directory) as broker:
        assert broker.control("/healthz").status == 200


def test_what_is_no_socket_is_not_removed(directory: Path) -> None:
    (directory / "control.sock").write_text("precious\n")
    sections = configuration.sections(directory, None)
    (directory / "postern.conf").write_text(configuration.render(sections))
    done = run("--config", directory / "postern.conf", home=directory)
    assert done.returncode == 2 and "control.sock" in done.stderr
    assert (directory / "control.sock").read_text() == "precious\n"


def test_the_default_path_is_in_the_users_runtime_directory(directory: Path) -> None:
    """Root's is /run/postern, where a test has no business."""
    with Broker(directory, prefix=as_a_user(), env={"XDG_RUNTIME_DIR": str(directory)},
                args=["--service-account", ACCOUNT, "--project", PROJECT, "--source", "offline"]) \
            as broker:
        assert broker.control_path == f"{directory}/postern/control.sock"
        assert stat.S_IMODE((directory / "postern").stat().st_mode) == 0o755
        assert broker.control("/healthz").status == 200
        assert '"event":"broker.start"' in broker.log  # the audit trail is there then


def test_without_a_runtime_directory_a_user_must_name_a_path(directory: Path) -> None:
    done = run("--service-account", ACCOUNT, "--project", PROJECT, "--source", "offline",
               home=directory, prefix=as_a_user())
    assert done.returncode == 2 and "--control" in done.stderr


def test_a_runtime_directory_that_no_answer_can_name_is_refused(directory: Path) -> None:
    """Whoever asked for a session inside was told of it in JSON, and that ended the broker."""
    runtime = directory / "\udce9"
    runtime.mkdir()
    done = run("--service-account", ACCOUNT, "--project", PROJECT, "--source", "offline",
               home=directory, prefix=as_a_user(), env={"XDG_RUNTIME_DIR": str(runtime)})
    assert done.returncode == 2 and "--control" in done.stderr
    assert f'XDG_RUNTIME_DIR is "{directory}/\\xe9", which is not UTF-8' in done.stderr


@pytest.mark.real_time
def test_readiness_ends_with_the_drain(broker: Broker, google: Standin) -> None:
    google.hold(MINT)
    with broker.client() as client, broker.control_client() as control:
        client.send(request(TOKEN))
        google.wait_for(MINT)
        assert control.ask("/readyz", host="postern", flavor=False).status == 200
        broker.process.terminate()
        broker.wait_for_log("stopping")
        eventually("no new connection", lambda: is_closed(broker))
        google.release(MINT)
        assert client.read().token
    assert broker.wait() == 0


def is_closed(broker: Broker) -> bool:
    """Whether its endpoint takes no connection."""
    try:
        broker.client(timeout_s=0.04).close()
    except ConnectionRefusedError:
        return True
    except (ConnectionResetError, TimeoutError):
        pass  # it came in the instant of closing
    return False
