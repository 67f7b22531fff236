# SPDX-License-Identifier: Apache-2.0
"""No secret of the run is in anything that the suite wrote. Runs last."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.google.standin import Standin

from . import leaks

SECRET = "ya29.c.planted-secret-0123456789_abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize("form", [
    lambda secret: secret,
    lambda secret: f"info: a line with token={secret} in it\n",
    lambda secret: json.dumps({"event": "x", "token": secret}) + "\n",
    lambda secret: f'warning: "{secret[:45]}"...\n',
    lambda secret: f"...{secret[-40:]}",
    lambda secret: base64.b64encode(secret.encode()).decode(),
    lambda secret: base64.b64encode(f"Bearer {secret}\n".encode()).decode(),
    lambda secret: base64.b64encode(f"user:{secret}".encode()).decode(),
], ids=["alone", "log", "audit", "begin", "end", "base64-0", "base64-1", "base64-2"])
def test_a_planted_secret_is_found(tmp_path: Path, form: Callable[[str], str]) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "stderr").write_text(form(SECRET))
    assert leaks.find(tmp_path, {SECRET}) == [f"{tmp_path}/below/stderr: ya29.c.p…"]


@pytest.mark.parametrize("client", ["c", "client", "client-0", "client-01"])
def test_a_client_s_secret_is_found_as_it_is_sent(tmp_path: Path, client: str) -> None:
    sent = base64.b64encode(f"{client}:{SECRET}".encode()).decode()
    (tmp_path / "stderr").write_text(f"> Authorization: Basic {sent}\n")
    assert leaks.find(tmp_path, {SECRET}) == [f"{tmp_path}/stderr: ya29.c.p…"]


@pytest.mark.parametrize("secret", ["", "short", SECRET[:23], " ".join(SECRET)])
def test_what_would_not_be_found_is_no_secret_to_note(secret: str) -> None:
    with pytest.raises(ValueError):
        leaks.note([secret])
    assert secret not in leaks.known


def test_every_kind_of_secret_is_found(tmp_path: Path) -> None:
    with Standin() as google:
        google.service_account_key()
        google.issue_minted_token()
        google.issue_source_token()
        secrets = google.secrets()
    assert len(secrets) > 20  # a client's, a refresh token, two access tokens, a key's lines
    for number, secret in enumerate(sorted(secrets)):
        (tmp_path / str(number)).write_text(json.dumps(secret))
    found = {line.split(":")[0] for line in leaks.find(tmp_path, secrets)}
    assert len(found) == len(secrets)


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("ready control=/run/postern/control.sock profile=vertex\n")
    assert leaks.find(tmp_path, {SECRET}) == []


def test_a_secret_of_this_run_would_be_found(artifacts: Path) -> None:
    planted = artifacts / "planted"
    some = sorted(leaks.known)[::50]
    planted.write_text("".join(f"info: {secret}\n" for secret in some))
    found = leaks.find(artifacts, leaks.known)
    planted.unlink()
    assert len({line for line in found if line.startswith(f"{planted}: ")}) >= len(
        {secret[:8] for secret in some})


def test_no_secret_is_in_what_the_suite_wrote(artifacts: Path, said: list[str]) -> None:
    (artifacts / "pytest").write_text("\n".join(said))
    written = [path for path in artifacts.rglob("stderr") if path.stat().st_size]
    assert written and leaks.known, "nothing was written: run all of tests/integration"
    assert leaks.find(artifacts, leaks.known) == []
