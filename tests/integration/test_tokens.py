# SPDX-License-Identifier: Apache-2.0
"""A token, from each source: what is asked of Google, and what the sandbox gets."""

from __future__ import annotations

import time

import pytest

from tests.google import jwt
from tests.google.script import Step
from tests.google.standin import ACCOUNT, SOURCE_ACCOUNT, USER, Standin
from tests.google.state import CLOUD_PLATFORM

from .broker import Broker
from .conftest import Starter
from .http1 import ACCOUNTS, TOKEN

MINT = "generateAccessToken"


def test_a_login_becomes_a_token_of_the_account(broker: Broker, google: Standin) -> None:
    reply = broker.token()
    info = google.token_info(reply.token)
    assert info is not None and info.minted
    assert (info.principal, info.scopes) == (ACCOUNT, (CLOUD_PLATFORM,))
    assert 3590 <= reply.expires_in <= 3600
    refresh, mint = google.calls
    assert (refresh.kind, refresh.status) == ("token", 200)
    assert (mint.kind, mint.status, mint.principal) == (MINT, 200, USER)


def test_a_login_is_refreshed_by_the_refresh_grant(broker: Broker, google: Standin) -> None:
    assert broker.token().token
    call, adc = google.calls_of("token")[0], google.adc()
    assert call.method == "POST"
    assert call.headers["content-type"] == "application/x-www-form-urlencoded"
    assert {name: call.body[name] for name in ("client_id", "client_secret", "refresh_token")} \
        == {name: adc[name] for name in ("client_id", "client_secret", "refresh_token")}
    assert call.body["grant_type"] == "refresh_token"


def test_the_mint_asks_for_the_profile_and_nothing_more(start: Starter, google: Standin) -> None:
    auth = "https://www.googleapis.com/auth"
    scopes = [f"{auth}/cloud-platform", f"{auth}/devstorage.read_only"]
    first, second = (google.add_account(f"{name}@my-project.iam.gserviceaccount.com").email
                     for name in ("first", "second"))
    for caller, target in ((USER, first), (first, second), (second, ACCOUNT)):
        google.grant(caller, target)
    broker = start(google, profiles={"vertex": {
        "scopes": ", ".join(scopes), "lifetime": "45m", "delegates": f"{first}, {second}"}})
    assert broker.token().token
    call = google.calls_of(MINT)[0]
    assert call.method == "POST"
    assert call.path == f"/v1/projects/-/serviceAccounts/{ACCOUNT}:generateAccessToken"
    assert call.body == {
        "scope": scopes, "lifetime": "2700s",
        "delegates": [f"projects/-/serviceAccounts/{each}" for each in (first, second)]}
    assert call.headers["content-type"].partition(";")[0] == "application/json"
    assert "x-goog-user-project" not in call.headers


def test_without_delegates_none_are_sent(broker: Broker, google: Standin) -> None:
    assert broker.token().token
    assert google.calls_of(MINT)[0].body in (
        {"scope": [CLOUD_PLATFORM], "lifetime": "3600s"},
        {"scope": [CLOUD_PLATFORM], "lifetime": "3600s", "delegates": []})


def test_a_quota_project_is_sent_only_where_it_is_set(start: Starter, google: Standin) -> None:
    broker = start(google, source={"type": "file", "file": google.write_adc(),
                                   "quota_project": "my-project"})
    assert broker.token().token
    assert google.calls_of(MINT)[0].headers["x-goog-user-project"] == "my-project"


def test_a_quota_project_of_the_file_is_not_sent(start: Starter, google: Standin) -> None:
    """googleapis/google-cloud-java#14450: the file's quota project made the mint fail."""
    broker = start(google, source={
        "type": "file", "file": google.write_adc(quota_project_id="other-project")})
    assert broker.token().token
    assert "x-goog-user-project" not in google.calls_of(MINT)[0].headers


def test_a_second_request_is_served_from_the_cache(broker: Broker, google: Standin) -> None:
    first = broker.token()
    google.forget_calls()
    for target in (TOKEN, f"{ACCOUNTS}/{ACCOUNT}/token", f"{TOKEN}?scopes=x", f"{TOKEN}?alt=json"):
        again = broker.get(target)
        assert again.token == first.token
    assert google.calls == []


def test_expires_in_counts_down(broker: Broker, google: Standin) -> None:
    """gcp-metadata and test-infra#16762: what is said of the life is true when it is said.

    google-auth-library-ruby#464: a kept answer had its first expires_in.
    """
    first = broker.token()
    begun = time.monotonic()
    later = broker.until(lambda reply: reply.expires_in < first.expires_in)
    assert later.token == first.token
    assert first.expires_in - later.expires_in <= time.monotonic() - begun + 1
    expires_at = google.minted[0].expires_ns / 1e9
    assert -1.1 <= broker.token().expires_in - (expires_at - time.time()) <= 1.1


def test_nothing_is_minted_before_somebody_asks(broker: Broker, google: Standin) -> None:
    for target in ("/", ACCOUNTS, f"{ACCOUNTS}/default/?recursive=true", "/computeMetadata/v1/"):
        assert broker.get(target).status == 200
    assert broker.get(TOKEN, flavor=False).status == 403
    assert broker.get(TOKEN, method="POST").status == 405
    assert google.calls == []


def test_a_request_cannot_widen_the_scopes(broker: Broker, google: Standin) -> None:
    wide = "https://www.googleapis.com/auth/drive,https://www.googleapis.com/auth/compute"
    info = google.token_info(broker.get(f"{TOKEN}?scopes={wide}").token)
    assert info is not None and info.scopes == (CLOUD_PLATFORM,)


# a service account's key


@pytest.fixture
def by_key(start: Starter, google: Standin) -> Broker:
    return start(google, source={"type": "file", "file": google.write_service_account()})


def test_a_key_needs_no_token_endpoint(by_key: Broker, google: Standin) -> None:
    assert by_key.token().token
    assert [(call.kind, call.principal) for call in google.calls] == [(MINT, SOURCE_ACCOUNT)]


def test_an_assertion_is_what_google_asks_for(by_key: Broker, google: Standin) -> None:
    """google-auth-library-java#682: iat of a fast clock was refused: it is dated back."""
    before = int(time.time())
    assert by_key.token().token
    claims = jwt.peek(google.assertions[0])
    assert claims["iss"] == claims["sub"] == SOURCE_ACCOUNT
    assert claims["aud"] == "https://iamcredentials.googleapis.com/"
    assert "scope" not in claims
    assert before - 35 <= claims["iat"] <= time.time() - 25
    assert 0 < claims["exp"] - claims["iat"] <= 3600


def test_every_attempt_has_an_assertion_of_its_own(by_key: Broker, google: Standin) -> None:
    """peburrows/goth#113: the stale one was sent again and again.

    Nor does libcurl send one twice, where a connection that was kept is reset.
    """
    google.script(MINT, Step(status=503), Step(reset=True))
    by_key.until_token(timeout_s=15)
    assert google.count(MINT) == 3 and len(set(google.assertions)) == 3
    assert google.replays == []


def test_a_clock_that_is_off_is_told_and_made_up_for(start: Starter, google: Standin) -> None:
    """googleapis/google-api-php-client#1501: "Invalid JWT" was the host's clock."""
    google.clock_offset_s = 200.0
    broker = start(google, source={"type": "file", "file": google.write_service_account()},
                   profiles={"one": {}, "two": {"lifetime": "30m"}})
    first = broker.token("one")
    assert 3590 <= first.expires_in <= 3600  # by Google's Date, not by our clock
    broker.wait_for_log(r"^warning: clock: .* behind ")
    assert broker.token("two").token
    late, corrected = (jwt.peek(assertion)["iat"] for assertion in google.assertions)
    assert 195 <= corrected - late <= 205


# others


def test_an_offline_token_is_marked_as_such(start: Starter) -> None:
    """gce_metadata_server#10: a source for tests, which nobody takes for another."""
    broker = start()
    reply = broker.token()
    assert reply.token.startswith("offline.") and reply.expires_in <= 3600
    assert broker.token().token == reply.token
    assert broker.status()["source"]["type"] == "offline"
    assert broker.audit_of("broker.start")[0]["source"] == "offline"
    assert "offline" in broker.log


def test_adc_is_found_by_its_variable_and_by_its_place(start: Starter, google: Standin) -> None:
    config = google.directory / "gcloud"
    home = google.directory / "home"
    (home / ".config" / "gcloud").mkdir(parents=True)
    config.mkdir()
    name = "application_default_credentials.json"
    google.write_adc(config / name)
    google.write_adc(home / ".config" / "gcloud" / name)
    for env in ({"GOOGLE_APPLICATION_CREDENTIALS": str(google.write_service_account())},
                {"CLOUDSDK_CONFIG": str(config)}, {"HOME": str(home)}):
        google.forget_calls()
        broker = start(google, source={"type": "adc"}, env=env)
        assert broker.token().token
        by = SOURCE_ACCOUNT if "GOOGLE_APPLICATION_CREDENTIALS" in env else USER
        assert google.calls_of(MINT)[0].principal == by


def test_an_access_token_of_the_source_is_used_again(start: Starter, google: Standin) -> None:
    broker = start(google, profiles={"one": {}, "two": {"lifetime": "30m"}})
    assert broker.token("one").token != broker.token("two").token
    assert (google.count("token"), google.count(MINT)) == (1, 2)


def test_plain_http_to_loopback_works_where_it_is_allowed(start: Starter, google: Standin) -> None:
    broker = start(google, endpoints={"iamcredentials": google.http_url, "oauth2": google.http_url,
                                      "allow_http_loopback": "yes"})
    assert broker.token().token
    assert google.tls_connections == 0


def test_a_long_token_is_passed_on_whole(broker: Broker, google: Standin) -> None:
    google.script(MINT, Step(token_bytes=8000))
    assert len(broker.token().token) == 8000


def test_a_killed_broker_starts_again(start: Starter, google: Standin) -> None:
    """kube2iam#78: nothing to clean after a crash."""
    broker = start(google)
    assert broker.token().token
    broker.kill()
    broker.start()
    assert broker.token().token
    assert broker.status()["pid"] == broker.pid
