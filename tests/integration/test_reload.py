# SPDX-License-Identifier: Apache-2.0
"""SIGHUP: a good file applies whole, a bad one not at all, and requests flow meanwhile."""

from __future__ import annotations

import signal
import socket
import threading
from typing import Any

import pytest

from tests.google.script import Step
from tests.google.standin import ACCOUNT, PROJECT, SOURCE_ACCOUNT, USER, Standin

from . import procfs
from .broker import Broker
from .conftest import Starter
from .deadline import eventually
from .http1 import ACCOUNTS, TOKEN, Client, request

MINT = "generateAccessToken"
OTHER = "other@my-project.iam.gserviceaccount.com"


def reloads(running: Broker, **settings: Any) -> None:
    """A reload that applies."""
    running.configure(**settings)
    assert running.reload()["result"] == "ok", running.log


@pytest.fixture
def free_ports() -> list[int]:
    """Two ports that nobody listens on, most likely."""
    with socket.create_server(("127.0.0.1", 0)) as one, \
            socket.create_server(("127.0.0.1", 0)) as two:
        return [one.getsockname()[1], two.getsockname()[1]]


def test_a_changed_lifetime_counts_for_the_next_mint(broker: Broker, google: Standin) -> None:
    assert broker.token().token
    reloads(broker, profiles={"vertex": {"lifetime": "30m"}})
    assert 1790 <= broker.token().expires_in <= 1800
    assert google.calls_of(MINT)[-1].body["lifetime"] == "1800s"


def test_a_token_outlives_a_reload_that_changes_nothing(broker: Broker, google: Standin) -> None:
    token = broker.token().token
    for _ in range(5):
        reloads(broker)
    assert broker.token().token == token and google.count(MINT) == 1


def test_a_changed_account_counts_at_once(broker: Broker, google: Standin) -> None:
    google.add_account(OTHER)
    google.grant(USER, OTHER)
    token = broker.token().token
    with broker.client() as kept:
        assert kept.ask(f"{ACCOUNTS}/default/email").text == ACCOUNT
        reloads(broker, profiles={"vertex": {"service_account": OTHER}})
        assert kept.ask(f"{ACCOUNTS}/default/email").text == OTHER
        changed = kept.ask(TOKEN).token
    assert changed != token
    info = google.token_info(changed)
    assert info is not None and info.principal == OTHER
    assert broker.get(f"{ACCOUNTS}/{ACCOUNT}/token").status == 404


def test_changed_scopes_count_at_once(broker: Broker, google: Standin) -> None:
    token, scope = broker.token().token, "https://www.googleapis.com/auth/devstorage.read_only"
    reloads(broker, profiles={"vertex": {"scopes": scope}})
    assert broker.get(f"{ACCOUNTS}/default/scopes").text == f"{scope}\n"
    changed = broker.token().token
    info = google.token_info(changed)
    assert changed != token and info is not None and info.scopes == (scope,)


def test_an_endpoint_is_added_moved_and_removed(start: Starter, free_ports: list[int]) -> None:
    broker = start()
    free_port = free_ports[0]
    address = broker.address()
    reloads(broker, profiles={"vertex": {}, "more": {"listen": f"127.0.0.1:{free_port}"}})
    broker.endpoints["more"] = ("127.0.0.1", free_port)
    assert broker.get("/", "more").status == 200 and broker.get("/").status == 200
    with broker.client() as kept:
        assert kept.ask("/").status == 200
        reloads(broker, profiles={"more": {"listen": f"127.0.0.2:{free_port}"}})
        assert kept.rest() == b""  # removed: closed
    for gone in (address, ("127.0.0.1", free_port)):
        with pytest.raises(ConnectionRefusedError):
            Client(gone)
    with Client(("127.0.0.2", free_port)) as client:
        assert client.ask("/", host="127.0.0.2").status == 200
    assert [p["listen"] for p in broker.status()["profiles"]] == [f"127.0.0.2:{free_port}"]


def test_a_port_that_the_kernel_chose_stays(start: Starter) -> None:
    broker = start()
    with broker.client() as kept:
        assert kept.ask("/").status == 200
        for _ in range(3):
            reloads(broker)
            assert kept.ask("/").status == 200
    assert broker.get("/").status == 200
    host, port = broker.address()
    assert broker.status()["profiles"][0]["listen"] == f"{host}:{port}"


def test_profiles_may_swap_their_endpoints(start: Starter, free_ports: list[int]) -> None:
    one, two = ({"listen": f"127.0.0.1:{port}"} for port in free_ports)
    broker = start(profiles={"one": {"project": "p-one", **one},
                             "two": {"project": "p-two", **two}})
    path = "/computeMetadata/v1/project/project-id"
    with broker.client("one") as kept:
        assert kept.ask(path).text == "p-one"
        reloads(broker, profiles={"one": {"project": "p-one", **two},
                                  "two": {"project": "p-two", **one}})
        assert kept.ask(path).text == "p-two"
    assert broker.get(path, "one").text == "p-two"  # what was one's address
    assert broker.get(path, "two").text == "p-one"


def test_refusals_are_of_the_profile_that_an_endpoint_has(start: Starter,
                                                          free_ports: list[int]) -> None:
    """The audit trail went on naming the one that it was opened for."""
    place = {"listen": f"127.0.0.1:{free_ports[0]}"}
    broker = start(profiles={"one": place})
    for _ in range(2):
        assert broker.get("/", "one", flavor=False).status == 403
    reloads(broker, profiles={"two": place})
    assert broker.get("/", "one", flavor=False).status == 403
    for profile, counts in (("one", [1, 1]), ("two", [1])):
        broker.wait_for_audit("request.refuse", profile=profile)
        assert [line["count"] for line in broker.audit_of(
            "request.refuse", profile=profile, reason="flavor")] == counts


@pytest.mark.real_time
@pytest.mark.parametrize(("step", "event", "status"), [
    (Step(), "token.serve", 200), (Step(reason="IAM_PERMISSION_DENIED"), "request.refuse", 403)],
    ids=["token", "refusal"])
def test_who_waited_is_on_record_with_the_profile_it_was_served_by(
        start: Starter, google: Standin, free_ports: list[int], step: Step, event: str,
        status: int) -> None:
    """The audit trail named the profile that had got the endpoint meanwhile."""
    one, two = ({"listen": f"127.0.0.1:{port}"} for port in free_ports)
    broker = start(google, profiles={"one": one, "two": {**two, "lifetime": "30m"}})
    google.hold(MINT)
    google.script(MINT, step)
    with broker.client("one") as client:
        client.send(request(TOKEN))
        google.wait_for(MINT)
        reloads(broker, profiles={"one": two, "two": {**one, "lifetime": "30m"}})
        google.release(MINT)
        assert client.read().status == status
    assert broker.wait_for_audit(event)["profile"] == "one"


def test_an_answer_outlives_the_profile_it_is_of(start: Starter) -> None:
    """The body of one that was still to be sent was freed with its profile."""
    broker = start(broker={"endpoint_rate": 1}, profiles={"one": {}, "two": {}})
    with broker.client("one") as client:
        client.send(request("/") * 4)
        answers = [client.read() for _ in range(2)]  # the third waits for the rate
        reloads(broker, profiles={"two": {}})
        answers.append(client.read())
        assert client.rest() == b""
    assert {(reply.status, reply.text) for reply in answers} == {(200, "computeMetadata/\n")}


def test_limits_change(start: Starter) -> None:
    broker = start()
    reloads(broker, broker={"endpoint_connections": 1})
    with broker.client() as client:
        assert client.ask("/").status == 200
        assert broker.get("/").status == 503
        reloads(broker, broker={"endpoint_connections": 64})
        assert broker.get("/").status == 200


def test_peers_change(start: Starter) -> None:
    broker = start()
    assert broker.get("/").status == 200
    reloads(broker, profiles={"vertex": {"allow_peers": "198.51.100.0/24"}})
    assert broker.get("/").status == 403


def test_the_log_level_changes(start: Starter) -> None:
    broker = start(broker={"log_level": "error"})
    broker.get("/")
    assert broker.log == ""
    reloads(broker, broker={"log_level": "info"})
    assert broker.token().token
    broker.wait_for_log("^info: minted: ")


def test_the_audit_trail_moves(start: Starter) -> None:
    broker = start()
    elsewhere = broker.directory / "elsewhere.jsonl"
    broker.configure(broker={"audit_log": elsewhere})
    broker.signal(signal.SIGHUP)
    eventually("a line elsewhere", lambda: elsewhere.exists() and elsewhere.read_text())
    assert broker.token().token
    eventually("the token there", lambda: "token.serve" in elsewhere.read_text())
    assert broker.audit_of("token.serve") == []


def test_a_new_login_counts_at_once(broker: Broker, google: Standin) -> None:
    """oidc-agent#507: once the operator has logged in again, nobody waits out a kept failure.

    anthropics/claude-code#726: the old login was kept after a new one.
    """
    google.revoke_login()
    assert broker.token().status == 403
    new = google.new_login()
    google.write_adc(broker.sections["source"]["file"], **new)
    assert broker.reload()["result"] == "ok"
    assert broker.token().token
    assert broker.audit_of("source.change")


def test_another_quota_project_counts_at_once(start: Starter, google: Standin) -> None:
    """What the old one was refused for was kept, for 30 s."""
    source = {"type": "file", "file": google.write_adc()}
    broker = start(google, source={**source, "quota_project": "not-mine"})
    assert broker.token().status == 403
    reloads(broker, source={**source, "quota_project": PROJECT})
    assert broker.token().token
    assert google.calls_of(MINT)[-1].headers["x-goog-user-project"] == PROJECT


def test_another_source_counts_at_once(start: Starter, google: Standin) -> None:
    broker = start(google)
    assert broker.token().token
    reloads(broker, source={"type": "file", "file": google.write_service_account()},
            profiles={"vertex": {"lifetime": "30m"}})
    assert broker.token().token
    assert google.calls_of(MINT)[-1].principal == SOURCE_ACCOUNT
    assert broker.status()["source"]["type"] == "service_account"


def test_tokens_of_the_offline_source_end_with_it(start: Starter, google: Standin) -> None:
    """A token's key holds its source: what one made is not served as another's."""
    broker = start(google, source={"type": "offline"})
    assert broker.token().token.startswith("offline.")
    reloads(broker)
    assert google.token_info(broker.token().token) is not None
    reloads(broker, source={"type": "offline"})
    assert broker.token().token.startswith("offline.")


@pytest.mark.real_time
def test_a_reload_while_a_mint_is_under_way(broker: Broker, google: Standin) -> None:
    google.hold(MINT)
    with broker.client() as client:
        client.send(request(TOKEN))
        google.wait_for(MINT)
        google.write_adc(broker.sections["source"]["file"], **google.new_login())
        reloads(broker, profiles={"vertex": {"lifetime": "30m"}})
        google.release(MINT)
        assert client.read().token
    assert broker.token().expires_in <= 1800


@pytest.mark.real_time
def test_a_profile_that_goes_while_a_mint_is_under_way(start: Starter, google: Standin) -> None:
    broker = start(google, profiles={"one": {}, "two": {}})
    google.hold(MINT)
    with broker.client("one") as client:
        client.send(request(TOKEN))
        google.wait_for(MINT)
        reloads(broker, profiles={"two": {}})
        assert client.read().status == 503
        google.release(MINT)
    assert broker.token("two").token


BAD = {
    "unknown key": {"profiles": {"vertex": {"colour": "blue"}}},
    "lifetime out of range": {"profiles": {"vertex": {"lifetime": "13h"}}},
    "wildcard": {"profiles": {"vertex": {"listen": "0.0.0.0:0"}}},
    "port in use": {"profiles": {"vertex": {}, "new": {"listen": "127.0.0.1:{port}"}}},
    "no such file": {"source": {"type": "file", "file": "/nonexistent/adc.json"}},
    "audit trail that cannot be": {"broker": {"audit_log": "/nonexistent/audit.jsonl"}},
    "no profile": None,
}


@pytest.mark.parametrize("settings", BAD.values(), ids=BAD.keys())
def test_a_bad_file_changes_nothing_and_says_so(broker: Broker, google: Standin,
                                                settings: Any) -> None:
    token, before = broker.token().token, broker.status()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        if settings is None:
            broker.write_config("[broker]\n")
        elif "new" in settings.get("profiles", {}):
            listen = f"127.0.0.1:{taken.getsockname()[1]}"
            broker.configure(profiles={**settings["profiles"], "new": {"listen": listen}})
        else:
            broker.configure(**settings)
        assert broker.reload()["result"] == "refused"
    assert len([line for line in broker.log.splitlines() if line.startswith("error: ")]) == 1
    assert broker.token().token == token
    after = broker.status()
    assert (after["profiles"], after["source"]) == (before["profiles"], before["source"])
    reloads(broker, profiles={"vertex": {"project": "p-new"}})
    assert broker.get("/computeMetadata/v1/project/project-id").text == "p-new"


def test_a_changed_control_socket_is_said_to_need_a_restart(broker: Broker) -> None:
    broker.configure(broker={"control_socket": broker.directory / "other.sock"})
    assert broker.reload()["result"] == "ok"
    broker.wait_for_log("^warning: control_socket: ")
    assert broker.control("/healthz").status == 200
    assert not (broker.directory / "other.sock").exists()


@pytest.mark.real_time
def test_requests_flow_through_a_hundred_reloads(broker: Broker, google: Standin) -> None:
    """On kept connections and on new ones, tokens and others; not one is lost."""
    token = broker.token().token
    stop = threading.Event()
    faults: list[BaseException] = []
    counts = [0, 0, 0]

    def ask(worker: int) -> None:
        try:
            with broker.client() as kept:
                while not stop.is_set():
                    if worker == 0:
                        assert kept.ask("/").status == 200
                    elif worker == 1:
                        assert kept.ask(TOKEN).token == token
                    else:
                        assert broker.get("/").status == 200
                    counts[worker] += 1
                    stop.wait(0.002)  # below the endpoint's rate
        except BaseException as err:
            faults.append(err)
    reloads(broker, broker={"endpoint_rate": 0})
    threads = [threading.Thread(target=ask, args=(worker,)) for worker in range(3)]
    for thread in threads:
        thread.start()
    try:
        for number in range(100):
            project = f"p-{number}"
            reloads(broker, broker={"endpoint_rate": 0}, profiles={"vertex": {"project": project}})
            assert not faults, faults
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not faults and all(count > 50 for count in counts), (faults, counts)
    assert broker.get("/computeMetadata/v1/project/project-id").text == "p-99"
    assert google.count(MINT) == 1


def test_a_hundred_reloads_leave_no_descriptor_behind(broker: Broker) -> None:
    reloads(broker)
    before = len(procfs.descriptors(broker.pid))
    for _ in range(100):
        broker.signal(signal.SIGHUP)
        assert broker.control("/healthz").status == 200
    reloads(broker)
    assert len(procfs.descriptors(broker.pid)) <= before + 1
