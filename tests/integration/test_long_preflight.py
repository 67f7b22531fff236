# SPDX-License-Identifier: Apache-2.0
"""A source that takes its time. Only with POSTERN_LONG=1."""

from __future__ import annotations

from tests.google.standin import Standin

from .conftest import Starter
from .gcloud import program
from .http1 import Client
from .sessions import MINT, SESSIONS, call
from .test_sources import ALLOW, from_file, printed

PROGRAM_S = 70


def test_mint_waits_for_a_program_that_takes_longer_than_a_minute(start: Starter,
                                                                  google: Standin) -> None:
    """Programs for subject tokens may take two minutes; the preflight gave up after 65 s."""
    answer = google.directory / "answer"
    answer.write_text(printed(google.new_subject_token()))
    slow = program(google.directory, f"sleep {PROGRAM_S}; cat $1")
    path = google.write_external_account(source={"executable": {
        "command": f"{slow} {answer}", "timeout_millis": 120000}})
    broker = start(google, source=from_file(path), env=ALLOW)
    with Client(broker.control_path, timeout_s=PROGRAM_S + 20) as client:
        reply = call(client, SESSIONS, "POST", {"profile": "vertex", "listen": "127.0.0.1",
                                                "preflight": "mint"})
    assert reply.status == 201 and google.count(MINT) == 1
