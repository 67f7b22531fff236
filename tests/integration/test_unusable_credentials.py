# SPDX-License-Identifier: Apache-2.0
"""A credential file that cannot be used: exit 2, one line with the file, the field, the repair."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.google.standin import Standin

from .broker import as_a_user
from .conftest import Starter
from .test_unusable_input import BOTH, changed, refusal

LOGIN = "gcloud auth application-default login"

Make = Callable[[Standin], dict[str, Any]]


def but(info: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Some fields changed, or left out where the change is None."""
    return {key: value for key, value in {**info, **changes}.items() if value is not None}


def login_but(**changes: Any) -> Make:
    return lambda google: but(google.adc(), changes)


def key_but(**changes: Any) -> Make:
    return lambda google: but(google.service_account_key(), changes)


def client_file(kind: str) -> Make:
    """What the console gives for an OAuth client, which is no credential."""
    return lambda google: {kind: {
        "client_id": google.adc()["client_id"], "client_secret": google.adc()["client_secret"],
        "auth_uri": "https://accounts.google.com/o/oauth2/auth",
        "token_uri": "https://oauth2.googleapis.com/token"}}


def of_type(kind: str, **more: Any) -> Make:
    return lambda google: {"type": kind, "universe_domain": "googleapis.com", **more}


def elliptic_key() -> str:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption()).decode()


SUPPORTED = "external_account and impersonated_service_account"
FOREIGN = ["https://198.51.100.254/token", "http://oauth2.googleapis.com/token",
           "https://oauth2.googleapis.com.evil.example/token", "https://evilgoogleapis.com/token",
           "https://oauth2.googleapis.com@evil.example/token",
           "https://evil.example\\@oauth2.googleapis.com/token",
           "https://oauth2.googleapis.com:8443/token", "https://127.0.0.1/token", "oauth2", ""]

FILES: dict[str, tuple[Make, list[str]]] = {
    "client of an installed app": (client_file("installed"), ["installed", "OAuth client", LOGIN]),
    "client of a web app": (client_file("web"), ["web", "OAuth client", LOGIN]),
    "no type": (login_but(type=None), ["type"]),
    "type of digits": (login_but(type=1), ["type"]),
    **{kind: (of_type(kind), ["type", kind, "not supported", SUPPORTED]) for kind in (
        "external_account_authorized_user", "gdch_service_account")},
    "unknown type": (of_type("x\n\x1b[2J"), ["type", "\\x1b", SUPPORTED]),
    "external_account without fields": (of_type("external_account"), ["audience", "gcloud iam"]),
    "impersonated without fields": (of_type("impersonated_service_account"),
                                    ["service_account_impersonation_url", LOGIN]),
    "other universe": (login_but(universe_domain="s3nsapis.fr"),
                       ["universe_domain", "s3nsapis.fr", "googleapis.com"]),
    "other universe of a key": (
        key_but(universe_domain="evil.example"),
        ["universe_domain", "evil.example"]),
    **{f"foreign token_uri {url}": (key_but(token_uri=url), ["token_uri"]) for url in FOREIGN},
    **{f"foreign {field}": (login_but(**{field: "https://evil.example/v1/token"}),
                            [field, "evil.example"])
       for field in ("token_uri", "token_url", "token_info_url",
                     "service_account_impersonation_url")},
    **{f"login without {name}": (login_but(**{name: None}), [name, LOGIN])
       for name in ("client_id", "client_secret", "refresh_token")},
    "login with an empty refresh_token": (login_but(refresh_token=""),
                                          ["refresh_token", LOGIN]),
    **{f"key without {name}": (key_but(**{name: None}), [name])
       for name in ("client_email", "private_key")},
    "client_email that is none": (key_but(client_email="a/b"),
                                  ["client_email"]),
    "key of words": (key_but(private_key="not a key"), ["private_key"]),
    "key of nothing": (key_but(private_key=""), ["private_key"]),
    "key that is cut": (lambda google: google.service_account_key(
        private_key=google.service_account_key()["private_key"][:800]), ["private_key"]),
    "key with a fault": (lambda google: google.service_account_key(
        private_key=google.service_account_key()["private_key"].replace("MII", "MIX", 1)),
        ["private_key"]),
    "key that is elliptic": (lambda google: google.service_account_key(
        private_key=elliptic_key()), ["private_key", "RSA"]),
    "key with escaped line ends": (lambda google: google.service_account_key(
        private_key=google.service_account_key()["private_key"].replace("\n", "\\n")),
        ["private_key"]),
}


def refused(directory: Path, file: Path, *options: str, prefix: list[str] | None = None) -> str:
    """What a broker with this source says."""
    line = refusal(directory, changed(directory, {"source": {"type": "file", "file": file}}),
                   *options, prefix=prefix)
    assert str(file) in line
    return line


def write(google: Standin, content: str | bytes, mode: int = 0o600) -> Path:
    """A credential file, away from what is searched for secrets."""
    file = google.directory / "source.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    file.chmod(mode)
    return file


@BOTH
@pytest.mark.parametrize("make, holds", FILES.values(), ids=FILES.keys())
def test_a_file_that_is_no_credential_is_refused(
        directory: Path, google: Standin, options: list[str], make: Make,
        holds: list[str]) -> None:
    line = refused(directory, write(google, json.dumps(make(google))), *options)
    for each in holds:
        assert each in line, line
    assert "\x1b" not in line


@BOTH
@pytest.mark.parametrize("content", ["", " \n", "{", '{"type": "authorized_user", "client', "[]",
                                     "null", "no JSON", '"text"', b"\xff\xfe{}", b"\0" * 100,
                                     '{"type": "authorized_user", "type": "service_account"}'])
def test_a_file_that_is_not_one_json_object_is_refused(
        directory: Path, google: Standin, options: list[str], content: str | bytes) -> None:
    assert LOGIN in refused(directory, write(google, content), *options)


@BOTH
def test_a_truncated_file_is_refused_without_a_word_of_it(directory: Path, google: Standin,
                                                          options: list[str]) -> None:
    whole = json.dumps(google.service_account_key(), indent=2)
    for at in range(20, len(whole) - 2, 200):
        line = refused(directory, write(google, whole[:at]), *options)
        assert "PRIVATE" not in line


@BOTH
@pytest.mark.parametrize("mode, repair", [
    (0o644, "chmod o-r"), (0o604, "chmod o-r"), (0o660, "chmod go-w"), (0o602, "chmod go-w"),
    (0o622, "chmod go-w"), (0o666, "chmod go-w,o-r"),
], ids=lambda value: f"{value:o}" if isinstance(value, int) else "")
def test_a_file_that_others_may_read_or_write_is_refused(
        directory: Path, google: Standin, options: list[str], mode: int, repair: str) -> None:
    for info in (google.adc(), google.service_account_key()):
        file = write(google, json.dumps(info), mode)
        assert f"{repair} {file}" in refused(directory, file, *options)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640, 0o440])
def test_a_file_of_owner_and_group_is_fine(start: Starter, google: Standin, mode: int) -> None:
    """As a service: root's, and its group's to read."""
    broker = start(google, source={"type": "file",
                                   "file": write(google, json.dumps(google.adc()), mode)})
    assert broker.token().token


@BOTH
def test_a_file_that_cannot_be_read_is_refused(directory: Path, google: Standin,
                                               options: list[str]) -> None:
    missing = google.directory / "missing.json"
    line = refused(directory, missing, *options)
    assert "No such file" in line and LOGIN in line
    file = write(google, json.dumps(google.adc()), 0)
    google.directory.chmod(0o755)
    line = refused(directory, file, *options, prefix=as_a_user())
    assert "Permission denied" in line and "chmod" in line
    refused(directory, google.directory, *options)
    fifo = google.directory / "fifo"
    os.mkfifo(fifo, 0o600)  # must not be waited for
    refused(directory, fifo, *options)
    refused(directory, write(google, json.dumps(google.adc(padding="x" * 100_000))), *options)


@BOTH
def test_a_variable_that_names_an_unusable_file_ends_the_search(
        directory: Path, google: Standin, options: list[str]) -> None:
    """No fall-through to the well-known place, as with Google's libraries."""
    place = directory / ".config" / "gcloud"
    place.mkdir(parents=True)
    missing = google.directory / "missing.json"
    text = changed(directory, {"source": {"type": "adc"}})
    line = refusal(directory, text, *options,
                   env={"GOOGLE_APPLICATION_CREDENTIALS": str(missing)})
    assert "GOOGLE_APPLICATION_CREDENTIALS" in line and str(missing) in line


@BOTH
def test_no_credentials_at_all_are_refused_with_the_way_to_them(
        directory: Path, options: list[str]) -> None:
    """pi#5323, llxprt-code#2959: say which place was looked at."""
    line = refusal(directory, changed(directory, {"source": {"type": "adc"}}), *options)
    assert LOGIN in line and f"{directory}/.config/gcloud" in line
