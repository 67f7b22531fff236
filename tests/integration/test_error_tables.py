# SPDX-License-Identifier: Apache-2.0
"""The error tables of IAM Credentials, of the OAuth2 endpoint, of keys and of federation, row by row: what
the sandbox gets, whether it is tried again, and what the operator is told to do.

A broker for each source and step, and a profile for each row. The rows whose answer is none need an
endpoint of their own each.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.google.ca import make_authority
from tests.google.script import Step
from tests.google.standin import ACCOUNT, SOURCE_ACCOUNT, USER, VM_ACCOUNT, Standin

from . import leaks
from .broker import Broker
from .conftest import new_directory
from .deadline import FACTOR
from .failure_matrix import LOGIN_EXPIRED, MINT, NO_ACCOUNT, NOT_ALLOWED, TEMPORARY
from .http1 import TOKEN
from .http1 import request as ask
from .test_mint_failures import assert_reported, explanation
from .test_sources import MIDDLE, from_file
from .test_upstream import mute

pytestmark = pytest.mark.real_time

BINDING = "gcloud iam service-accounts add-iam-policy-binding"
LOG_IN = "log in again with: gcloud auth application-default login, then copy the file"
NEW_KEY = "create a new key with: gcloud iam service-accounts keys create"
TOKEN_CREATOR = "roles/iam.serviceAccountTokenCreator"


@dataclass(frozen=True)
class Row:
    """A row of a table: who calls what, what comes, and what follows."""

    name: str
    source: str  # user, key, pool, chain, vm
    kind: str  # of the stand-in's requests
    step: Step | None  # None: what the stand-in says by itself
    text: str  # to the sandbox
    told: tuple[str, ...]  # to the operator, besides

    @property
    def group(self) -> tuple[str, str]:
        """Rows that may meet one broker."""
        return self.source, self.kind

    @property
    def id(self) -> str:
        """Its name in a report."""
        return f"{self.name} ({self.source})"


def mint(name: str, step: Step, text: str, *told: str, source: str = "key") -> Row:
    """A row of generateAccessToken."""
    return Row(name, source, MINT, step, text, told)


def oauth(error: str, text: str, *told: str, **step: Any) -> Row:
    """A row of the OAuth2 endpoint."""
    return Row(f"2.3 {error}", "user", "token", Step(**{"oauth_error": error, **step}), text, told)


def sts(error: str, text: str, *told: str, **step: Any) -> Row:
    """A row of the token service."""
    return Row(f"2.5 {error}", "pool", "sts", Step(**{"oauth_error": error, **step}), text, told)


ROWS = [
    mint("1.4 400", Step(status=400), NOT_ALLOWED, "scopes, delegates and lifetime",
         "allowServiceAccountCredentialLifetimeExtension"),
    mint("1.4 401 ACCESS_TOKEN_EXPIRED", Step(reason="ACCESS_TOKEN_EXPIRED"), TEMPORARY,
         "check the host's clock", LOG_IN, source="user"),
    mint("1.4 401 ACCESS_TOKEN_EXPIRED", Step(reason="ACCESS_TOKEN_EXPIRED"), TEMPORARY,
         "check the host's clock", "set-service-account VM --scopes=cloud-platform", source="vm"),
    mint("1.4 401 ACCESS_TOKEN_TYPE_UNSUPPORTED", Step(reason="ACCESS_TOKEN_TYPE_UNSUPPORTED"),
         NOT_ALLOWED, "use a login or a service account's key"),
    mint("1.4 403 IAM_PERMISSION_DENIED", Step(reason="IAM_PERMISSION_DENIED"), NOT_ALLOWED,
         f"{SOURCE_ACCOUNT} needs {TOKEN_CREATOR} on {ACCOUNT} itself",
         f"{BINDING} {ACCOUNT} --member=serviceAccount:{SOURCE_ACCOUNT} --role={TOKEN_CREATOR}",
         "takes minutes", "does not exist looks the same"),
    mint("1.4 403 IAM_PERMISSION_DENIED", Step(reason="IAM_PERMISSION_DENIED"), NOT_ALLOWED,
         f"{USER} needs {TOKEN_CREATOR} on {ACCOUNT}", f"--member=user:{USER}", source="user"),
    mint("1.4 403 IAM_PERMISSION_DENIED", Step(reason="IAM_PERMISSION_DENIED"), NOT_ALLOWED,
         f"{VM_ACCOUNT} needs {TOKEN_CREATOR}", f"--member=serviceAccount:{VM_ACCOUNT}",
         source="vm"),
    mint("1.4 403 SERVICE_DISABLED", Step(reason="SERVICE_DISABLED"), NOT_ALLOWED,
         "gcloud services enable iamcredentials.googleapis.com --project=123456789012",
         "takes minutes"),
    mint("1.4 403 ACCESS_TOKEN_SCOPE_INSUFFICIENT", Step(reason="ACCESS_TOKEN_SCOPE_INSUFFICIENT"),
         NOT_ALLOWED, "cloud-platform", LOG_IN, source="user"),
    mint("1.4 403 ACCESS_TOKEN_SCOPE_INSUFFICIENT", Step(reason="ACCESS_TOKEN_SCOPE_INSUFFICIENT"),
         NOT_ALLOWED, "set-service-account VM --scopes=cloud-platform", source="vm"),
    mint("1.4 403 USER_PROJECT_DENIED", Step(reason="USER_PROJECT_DENIED"), NOT_ALLOWED,
         "quota_project", "roles/serviceusage.serviceUsageConsumer"),
    mint("1.4 403 SECURITY_POLICY_VIOLATED", Step(reason="SECURITY_POLICY_VIOLATED"), NOT_ALLOWED,
         "VPC Service Controls", "unique id vpcServiceControlsUniqueIdentifier-0001"),
    mint("1.4 403 of a proxy", Step(html=True, status=403), NOT_ALLOWED, "proxy", TOKEN_CREATOR),
    mint("1.4 404", Step(status=404), NO_ACCOUNT, "service_account", "deleted"),
    mint("1.4 429", Step(status=429), TEMPORARY, "quota"),
    *(mint(f"1.4 {status}", Step(status=status), TEMPORARY, "tried again")
      for status in (500, 502, 503, 504)),
    oauth("invalid_grant", LOGIN_EXPIRED, "expired or was revoked", LOG_IN),
    oauth("invalid_rapt", LOGIN_EXPIRED, "session length", LOG_IN,
          oauth_error=None, error_subtype="invalid_rapt"),
    oauth("rapt_required", LOGIN_EXPIRED, "asks for the login again", LOG_IN,
          oauth_error=None, error_subtype="rapt_required"),
    oauth("invalid_client", LOGIN_EXPIRED, "OAuth client", LOG_IN, status=401),
    oauth("unauthorized_client", LOGIN_EXPIRED, "OAuth client", LOG_IN, status=401),
    oauth("deleted_client", LOGIN_EXPIRED, "was deleted", LOG_IN, status=401),
    oauth("invalid_scope", NOT_ALLOWED, "scope", LOG_IN),
    oauth("access_denied", NOT_ALLOWED, "policy", "administrator"),
    *(oauth(error, TEMPORARY, "tried again")
      for error in ("internal_failure", "server_error", "temporarily_unavailable")),
    oauth("internal_failure in words", TEMPORARY, "tried again", oauth_error="invalid_request",
          description="internal_failure"),
    *(Row(f"2.3 {status}", "user", "token", Step(status=status), TEMPORARY, ("tried again",))
      for status in (408, 429, 500, 503, 504)),
    mint("2.4 key deleted or rotated", Step(reason="ACCESS_TOKEN_TYPE_UNSUPPORTED"), NOT_ALLOWED,
         "deleted or disabled", NEW_KEY, f"--iam-account={SOURCE_ACCOUNT}"),
    mint("2.4 account disabled or deleted", Step(reason="ACCOUNT_STATE_INVALID"), TEMPORARY,
         f"gcloud iam service-accounts enable {SOURCE_ACCOUNT}"),
    sts("invalid_grant", LOGIN_EXPIRED, "older than an hour", "credential_source"),
    sts("invalid_target", NOT_ALLOWED, "audience", "number", "enabled"),
    sts("unauthorized_client", NOT_ALLOWED, "attribute condition", status=401),
    Row("2.5 403 after a good exchange", "chain", MINT, None, NOT_ALLOWED,
        (f"may not use {MIDDLE}", "roles/iam.workloadIdentityUser",
         f"{BINDING} {MIDDLE} --member=MEMBER", "takes minutes")),
    Row("2.5 429", "pool", "sts", Step(status=429), TEMPORARY, ("quota",)),
    Row("2.5 503", "pool", "sts", Step(status=503), TEMPORARY, ("tried again",)),
    Row("2.5 connection reset", "pool", "sts", Step(reset=True), TEMPORARY, ("reason=broken",)),
]


if FACTOR > 1:
    ROWS = ROWS[::6]  # only the faults of a wrapped broker count


def source_of(google: Standin, name: str) -> dict[str, Any]:
    """The [source] of a row."""
    return {
        "user": lambda: from_file(google.write_adc(account=USER)),
        "key": lambda: from_file(google.write_service_account()),
        "pool": lambda: from_file(google.write_external_account()),
        "chain": lambda: from_file(google.write_external_account(impersonate=MIDDLE)),
        "vm": lambda: {"type": "metadata", "metadata_host": google.metadata_host},
    }[name]()


@dataclass
class Outcome:
    """What became of a row."""

    text: str
    line: str
    calls: int  # for the first answer
    more: int  # for the next one, which came at once
    recovered: bool


def meet(google: Standin, broker: Broker, rows: list[Row]) -> dict[Row, Outcome]:
    """Each row by its profile; those that are tried again recover together."""
    outcomes = {}
    for n, row in enumerate(rows):
        before, begun = google.count(row.kind), time.monotonic()
        if row.step is not None:
            google.script(row.kind, row.step)
        text, ref = explanation(broker.token(f"p{n}"))
        after = google.count(row.kind)
        explanation(broker.token(f"p{n}"))
        # the shortest backoff is a second
        more = google.count(row.kind) - after if time.monotonic() < begun + 0.9 else 0
        outcomes[row] = Outcome(text, assert_reported(broker, ref), after - before, more, False)
    for n, row in enumerate(rows):
        if row.text == TEMPORARY:
            outcomes[row].recovered = broker.until_token(f"p{n}").status == 200
    return outcomes


def meet_group(directory: Path, group: tuple[str, str]) -> dict[Row, Outcome]:
    """A broker and a Google for the rows of a source and a step."""
    rows = [row for row in ROWS if row.group == group]
    with Standin() as google:
        google.add_account(MIDDLE)
        try:
            with Broker(directory, google, source=source_of(google, group[0]), profiles={
                    f"p{n}": {"lifetime": f"{3600 - n}s"} for n in range(len(rows))}) as broker:
                return meet(google, broker, rows)
        finally:
            leaks.note(google.secrets())


@pytest.fixture(scope="module")
def groups(artifacts: Path, request: pytest.FixtureRequest) -> Iterator[dict[
        tuple[str, str], Future[dict[Row, Outcome]]]]:
    """All rows, by group; most of the time is backoff, so the groups run beside each other."""
    names = dict.fromkeys(row.group for row in ROWS)
    with ThreadPoolExecutor(len(names) if FACTOR == 1 else 1) as pool:
        yield {name: pool.submit(meet_group, new_directory(artifacts, request.node.nodeid), name)
               for name in names}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_row(groups: dict[tuple[str, str], Future[dict[Row, Outcome]]], row: Row) -> None:
    """google-github-actions/auth#340: who lacks which role where, with the command that gives it."""
    outcome = groups[row.group].result()[row]
    assert outcome.text == row.text and outcome.calls == 1
    assert outcome.recovered == (row.text == TEMPORARY)
    # neither kind is tried again at once
    assert outcome.more == 0
    assert f"class={'transient' if row.text == TEMPORARY else 'permanent'}" in outcome.line
    for part in row.told:
        assert part in outcome.line


@pytest.mark.parametrize("name", ["curl 7", "curl 35", "curl 60"])
def test_a_row_without_an_answer(artifacts: Path, request: pytest.FixtureRequest,
                                 google: Standin, tmp_path: Path, name: str) -> None:
    """curl 6 and 28 are in tests/unit/test_failure.c: nothing here may ask for names, or wait 10 s."""
    google.stop() if name == "curl 7" else None
    with mute(b"no TLS\r\n") as silent, Broker(
            new_directory(artifacts, request.node.nodeid), google,
            source=from_file(google.write_service_account()), endpoints={
                "curl 7": {}, "curl 35": {"iamcredentials": silent},
                "curl 60": {"ca_file": make_authority(tmp_path).ca_file}}[name]) as broker:
        text, ref = explanation(broker.token())
        line = assert_reported(broker, ref)
    assert text == TEMPORARY and "class=transient" in line
    for part in {"curl 7": ("reason=connect", "check the network and the proxy"),
                 "curl 35": ("reason=tls", "check the proxy"),
                 "curl 60": ("reason=certificate", "check the clock, ca_file", "proxy")}[name]:
        assert part in line


@pytest.mark.parametrize("offset_s, told", [(-7200.0, "ahead of"), (7200.0, "behind")])
def test_a_skew_is_told_with_the_refusal(artifacts: Path, request: pytest.FixtureRequest,
                                         google: Standin, offset_s: float, told: str) -> None:
    """2.4 Invalid JWT: googleapis/google-api-php-client#1501 was a host's clock."""
    google.clock_offset_s = offset_s
    with Broker(new_directory(artifacts, request.node.nodeid), google,
                source=from_file(google.write_service_account())) as broker:
        text, ref = explanation(broker.token())
        line = assert_reported(broker, ref)
        broker.until_token()
    assert text == TEMPORARY and "http_status=401" in line
    # a loaded machine reads the answer seconds after it was dated
    assert re.search(rf"the host's clock is 7(19|20)\d s {told} Google's: set it", line)


@pytest.mark.parametrize("impersonated", [False, True])
def test_a_skew_excuses_all_who_signed_before_it_was_known(
        artifacts: Path, google: Standin, request: pytest.FixtureRequest,
        impersonated: bool) -> None:
    """Of two first mints at once the second one was refused for good."""
    google.add_account(MIDDLE)
    google.grant(SOURCE_ACCOUNT, MIDDLE)
    google.grant(MIDDLE, ACCOUNT)
    google.clock_offset_s = -600.0
    file = (google.write_impersonated(account=MIDDLE, source=google.service_account_key())
            if impersonated else google.write_service_account())
    google.hold(MINT)
    with Broker(new_directory(artifacts, request.node.nodeid), google, source=from_file(file),
                profiles={"one": {}, "two": {"lifetime": "30m"}}) as broker, \
            broker.client("one") as one, broker.client("two") as two:
        for client in (one, two):
            client.send(ask(TOKEN))
            assert broker.get("/", "two").status == 200  # what was sent before it is read
        # Both have signed. Impersonated, they wait for the one token of the account in between; else the second
        # call may wait for the first one's connection, as with libcurl 8.14.
        google.wait_for(MINT, 1)
        google.release(MINT)
        assert [explanation(client.read())[0] for client in (one, two)] == [TEMPORARY] * 2
        for profile in ("one", "two"):
            broker.until_token(profile)


def test_a_skew_is_learned_where_the_source_impersonates(artifacts: Path, google: Standin,
                                                         request: pytest.FixtureRequest) -> None:
    """The key within a file signed by a clock that was off, and each try after it, for ever."""
    google.add_account(MIDDLE)
    google.grant(SOURCE_ACCOUNT, MIDDLE)
    google.grant(MIDDLE, ACCOUNT)
    google.clock_offset_s = -600.0
    file = google.write_impersonated(account=MIDDLE, source=google.service_account_key())
    with Broker(new_directory(artifacts, request.node.nodeid), google,
                source=from_file(file)) as broker:
        text, ref = explanation(broker.token())
        line = assert_reported(broker, ref)
        broker.wait_for_log(r"^warning: clock: .* ahead of ")
        broker.until_token()
    assert text == TEMPORARY and "step=impersonate http_status=401" in line
