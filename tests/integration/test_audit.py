# SPDX-License-Identifier: Apache-2.0
"""The audit trail: contract, section 9."""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import signal
import stat
from typing import Any

import pytest

from tests.google.standin import ACCOUNT, Standin

from .broker import Broker
from .conftest import Starter
from .deadline import eventually
from .http1 import TOKEN

EVENTS = {"broker.start", "broker.stop", "config.reload", "source.change", "session.open",
          "session.counts", "session.close", "token.mint", "token.serve", "request.refuse",
          "control.refuse", "session.attach", "attach.refuse"}


def fingerprint(token: str) -> str:
    """How a token is named: the first 16 hex digits of its SHA-256."""
    return hashlib.sha256(token.encode()).hexdigest()[:16]


@pytest.mark.real_time
def test_the_life_of_a_broker_is_on_record(broker: Broker, google: Standin) -> None:
    token = broker.token().token
    assert broker.get("/unknown").status == 404
    assert broker.control("/unknown").status == 404
    assert broker.reload()["result"] == "ok"
    assert broker.stop() == 0
    lines = broker.audit
    assert [line["event"] for line in lines if line["event"] != "session.counts"] == [
        "broker.start", "token.mint", "token.serve", "request.refuse", "control.refuse",
        "config.reload", "broker.stop"]
    for line in lines:
        assert line["event"] in EVENTS
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", line["time"])
    start, mint, serve = lines[:3]
    assert start["source"] == "authorized_user" and start["uid"] == os.getuid()
    assert (mint["profile"], mint["account"], mint["result"]) == ("vertex", ACCOUNT, "ok")
    assert re.fullmatch("[0-9a-f]{8}", mint["ref"])
    assert mint["token"] == serve["token"] == fingerprint(token)
    assert (serve["profile"], serve["peer"], serve["status"]) == ("vertex", "127.0.0.1", 200)
    assert serve["session"] is None and 3590 <= serve["expires_in"] <= 3600


def test_a_serve_is_written_once_and_then_counted(broker: Broker) -> None:
    assert broker.token().token
    with broker.client() as client:
        for _ in range(49):
            assert client.ask(TOKEN).token
    assert broker.stop() == 0
    assert len(broker.audit_of("token.serve")) == 1
    assert sum(line["tokens"] for line in broker.audit_of("session.counts")[-1:]) == 50


def test_a_serve_is_written_before_the_answer(broker: Broker) -> None:
    assert broker.token().token
    assert len(broker.audit_of("token.serve")) == 1  # without waiting for it


def test_endpoints_are_counted_apart(start: Starter) -> None:
    broker = start(profiles={"one": {}, "two": {}})
    assert broker.token("one").token == broker.token("two").token  # one account, one key
    assert {line["profile"] for line in broker.audit_of("token.serve")} == {"one", "two"}


def test_the_trail_is_appended_to(broker: Broker) -> None:
    broker.kill()
    broker.start()
    assert broker.stop() == 0
    events = [line["event"] for line in broker.audit]
    assert events.count("broker.start") == 2 and events.count("broker.stop") == 1


def test_the_trail_is_not_everybodys(start: Starter) -> None:
    broker = start(umask=0)
    mode = stat.S_IMODE((broker.directory / "audit.jsonl").stat().st_mode)
    assert not mode & stat.S_IRWXO and not mode & stat.S_IWGRP


def test_the_trail_may_be_standard_error(start: Starter) -> None:
    broker = start(broker={"audit_log": "stderr"})
    assert broker.token().token
    lines = [json.loads(line) for line in broker.log.splitlines() if line.startswith("{")]
    assert {"broker.start", "token.mint", "token.serve"} <= {line["event"] for line in lines}


def test_the_trail_may_be_off(start: Starter) -> None:
    broker = start(broker={"audit_log": "off"})
    assert broker.token().token
    assert broker.get("/unknown").status == 404
    assert broker.stop() == 0
    assert not (broker.directory / "audit.jsonl").exists() and '"event"' not in broker.log


def test_no_line_no_token_where_it_is_required(start: Starter) -> None:
    broker = start(broker={"audit_log": "/dev/full", "audit_required": "yes"})
    for _ in range(3):
        reply = broker.token()
        assert reply.status == 503 and b"access_token" not in reply.body
        assert reply.json["error"] == "temporarily_unavailable" and reply.header("Retry-After")
    assert broker.get("/").status == 200  # tells nothing that is worth a line
    ref = re.search(r"ref ([0-9a-f]{8})", reply.text)
    assert ref and re.search(rf"^error: .*ref={ref[1]}.*audit_required", broker.log, re.M)


def test_a_lost_line_is_said_where_it_is_not_required(start: Starter) -> None:
    broker = start(broker={"audit_log": "/dev/full"})
    assert broker.token().token
    assert broker.get("/unknown").status == 404
    assert len(re.findall("^error: audit: ", broker.log, re.M)) == 1


def limit_files(broker: Broker, size: int) -> None:
    """How large a file it may write: what a full disk does, of one process."""
    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def whole_lines(broker: Broker) -> tuple[list[dict[str, Any]], int]:
    """The lines of the trail that are JSON, and how many are not."""
    lines, torn = [], 0
    for text in (broker.directory / "audit.jsonl").read_text().splitlines():
        try:
            lines.append(json.loads(text))
        except ValueError:
            torn += 1
    return lines, torn


@pytest.mark.parametrize("after", ["nothing", "reload", "restart"])
def test_a_torn_line_takes_no_other_along(start: Starter, after: str) -> None:
    """The disk became full within a line; the next whole one was written behind its half."""
    broker = start(broker={"audit_required": "yes"}, prefix=["env", "--ignore-signal=XFSZ"])
    limit_files(broker, (broker.directory / "audit.jsonl").stat().st_size + 20)
    assert broker.token().status == 503
    if after == "restart":
        broker.kill()
        broker.start()
    else:
        limit_files(broker, resource.RLIM_INFINITY)
    if after == "reload":
        broker.signal(signal.SIGHUP)
        eventually("the reload on record", lambda: any(
            line["event"] == "config.reload" for line in whole_lines(broker)[0]))
    broker.until_token()
    lines, torn = whole_lines(broker)
    assert torn == 1
    assert [line["event"] for line in lines if line["event"] == "token.serve"] == ["token.serve"]
    # what was first written after it
    first = {"nothing": "token.serve", "reload": "config.reload", "restart": "broker.start"}[after]
    assert lines[1]["event"] == first


@pytest.mark.parametrize("account", [1, 300])
def test_refusals_cannot_flood_the_trail(start: Starter, account: int) -> None:
    """However many peers; each (reason, peer) is told apart as far as there is room."""
    broker = start(broker={"endpoint_rate": 0})
    for number in range(account):
        assert broker.get("/x", source=f"127.1.{number // 250}.{number % 250 + 1}").status == 404
    for _ in range(100):
        assert broker.get("/x").status == 404
    total = account + 100
    eventually("all counted", lambda: sum(
        line["count"] for line in broker.audit_of("request.refuse")) == total)
    assert len(broker.audit_of("request.refuse", peer="127.0.0.1")) <= 4
