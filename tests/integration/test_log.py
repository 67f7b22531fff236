# SPDX-License-Identifier: Apache-2.0
"""The log: one line an event, nothing that a client chose outside quotes, nobody waits for it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re

from tests.google.script import Step
from tests.google.standin import Standin

from .broker import Broker
from .conftest import Starter
from .http1 import TOKEN, Broken, request
from .test_audit import fingerprint
from .test_malformed_heads import HEADS

LINE = re.compile(r"(<[3467]>)?(error|warning|info|debug): [ -~]{1,4000}")


def test_each_line_is_an_event(broker: Broker, google: Standin) -> None:
    google.script("generateAccessToken", Step(status=500))
    assert broker.token().status == 503
    assert broker.reload()["result"] == "ok"
    for line in broker.log.splitlines():
        assert LINE.fullmatch(line), line


def test_a_token_is_named_by_its_fingerprint(broker: Broker) -> None:
    token = broker.token().token
    line = broker.wait_for_log("^info: minted: .*$")[0]
    assert f"token={fingerprint(token)}" in line and "profile=vertex" in line
    assert token[:16] not in broker.log


def test_what_a_client_sends_forges_no_line(broker: Broker) -> None:
    """At the level debug, in the target, in the headers, in the method."""
    word = "zzyzx"
    evil = f"{word}\terror: forged=yes\x1b[2J\x7f\xff"
    whole = [request(f"/{evil}"), request("/", host=evil), request("/", method=word.upper()),
             request("/", headers=[("User-Agent", evil), ("X-Forwarded-For", evil)]),
             request("/", headers=[("Metadata-Flavor", evil)]), *HEADS.values()]
    for each in whole:
        with broker.client() as client:
            client.send(each)
            with contextlib.suppress(Broken):
                assert client.read().status != 200
    broker.control(f"/{word}%0aerror:%20forged")
    for text in (broker.log, (broker.directory / "audit.jsonl").read_text()):
        assert "\x1b" not in text and "forged" not in re.sub(r'"(\\.|[^"\\])*"', "", text)
        assert word.upper() not in re.sub(r'"(\\.|[^"\\])*"', "", text)


def test_under_systemd_each_line_has_its_priority(start: Starter) -> None:
    broker = start(env={"JOURNAL_STREAM": "8:12345"})
    assert broker.token().token
    assert broker.stop() == 0
    lines = broker.log.splitlines()
    assert lines and all(re.match("<[3467]>(error|warning|info|debug): ", line) for line in lines)
    assert {"<4>warning", "<6>info"} <= {line.split(":")[0] for line in lines}


def test_a_level_hides_what_is_below_it(start: Starter) -> None:
    broker = start(broker={"log_level": "warning"})
    assert broker.token().token
    assert broker.stop() == 0
    assert {line.split(":")[0] for line in broker.log.splitlines()} <= {"warning", "error"}


def test_nobody_waits_for_who_does_not_read_the_log(start: Starter, google: Standin) -> None:
    """Standard error and the audit trail are a pipe, full, and its reader has stopped."""
    reader, writer = os.pipe()
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, reader)
        stack.callback(os.close, writer)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        broker = start(google, stderr=writer, broker={"audit_log": "stderr"},
                       profiles={f"p{n}": {"lifetime": f"{3600 - n}s"} for n in range(30)})
        with contextlib.suppress(BlockingIOError):
            os.set_blocking(writer, False)
            while True:
                os.write(writer, b".")
        os.set_blocking(writer, True)
        for profile in broker.endpoints:
            assert broker.token(profile).token
            assert broker.get("/unknown", profile).status == 404
        with broker.client() as client:
            assert client.ask(TOKEN).token
        os.read(reader, 65536)
        assert broker.control("/unknown").status == 404
        os.set_blocking(reader, False)
        assert b"control.refuse" in os.read(reader, 65536)
        assert broker.stop() == 0
