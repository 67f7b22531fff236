# SPDX-License-Identifier: Apache-2.0
"""The README's own requests and variables."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.google.standin import Standin
from tests.integration import leaks
from tests.integration.broker import Broker

from .observed import endpoint
from .program import ROOT, contract_variables

BY_HAND = "127.0.0.1:8174"
SANDBOX = "host.docker.internal:8174"


def requests_by_hand() -> list[str]:
    """Its curl commands for a broker on this machine, continued lines joined."""
    text = (ROOT / "README.md").read_text().replace("\\\n", " ")
    return [line for line in text.split("\n")
            if line.startswith("curl ") and (BY_HAND in line or "--unix-socket" in line)]


@pytest.fixture
def answers(google: Standin, broker: Broker, directory: Path) -> list[dict[str, object]]:
    """What they give at a broker of ours."""
    (directory / "build").mkdir()
    os.symlink(broker.control_path, directory / "build" / "postern.sock")
    made = []
    for command in requests_by_hand():
        ran = subprocess.run(
            ["bash", "-c", command.replace(BY_HAND, endpoint(broker))], cwd=directory, text=True,
            capture_output=True, timeout=30, check=True,
            env={"PATH": "/usr/bin:/bin", "HOME": str(directory)})
        made.append(json.loads(ran.stdout))
    leaks.note(google.secrets())
    return made


def test_the_requests_by_hand_are_answered(google: Standin, broker: Broker,
                                           answers: list[dict[str, object]]) -> None:
    token, status = answers
    assert sorted(token) == ["access_token", "expires_in", "token_type"]
    info = google.token_info(str(token["access_token"]))
    assert info is not None and info.principal == google.account and info.minted
    assert status["pid"] == broker.pid


def test_the_variables_are_those_of_the_clients() -> None:
    text = (ROOT / "README.md").read_text()
    start = text.index(f"GCE_METADATA_HOST={SANDBOX}")
    block = text[start:text.index("```", start)]
    named = dict(re.findall(r"(\w+)=(\S+)", block))
    assert named == contract_variables(SANDBOX)
