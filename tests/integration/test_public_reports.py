# SPDX-License-Identifier: Apache-2.0
"""What other minters of tokens were reported for, where no other test is about just that. All of them
are listed in tests/unit/test_reports.py."""

from __future__ import annotations

import pytest

from tests.google.script import Step
from tests.google.standin import ACCOUNT, SOURCE_ACCOUNT, USER, VM_ACCOUNT, Standin
from tests.google.state import CLOUD_PLATFORM

from .broker import Broker
from .conftest import Starter
from .deadline import eventually
from .test_mint_failures import LOGIN_EXPIRED, NO_ACCOUNT, NOT_ALLOWED, TEMPORARY, explanation
from .test_sources import MIDDLE, from_file

pytestmark = pytest.mark.real_time

MINT = "generateAccessToken"
STORAGE = "https://www.googleapis.com/auth/devstorage.read_only"


def the_machine(google: Standin) -> dict[str, str]:
    """The metadata server as the source."""
    return {"type": "metadata", "metadata_host": google.metadata_host}


def test_a_busy_metadata_server_is_asked_again(start: Starter, google: Standin) -> None:
    """google-cloud-go#10610, #12929: its 429 was the application's; and nothing said whose it was."""
    google.script("metadataToken", Step(status=429))
    broker = start(google, source=the_machine(google))
    assert explanation(broker.token())[0] == TEMPORARY
    broker.wait_for_log("step=metadata http_status=429 .*class=transient")
    broker.until_token()
    assert google.count("metadataToken") == 2


def test_a_metadata_servers_old_token_is_not_polled(start: Starter, google: Standin) -> None:
    """googleapis/google-cloud-cpp#8255: it gives the same token to its last minutes, whoever asks."""
    google.always("metadataToken", Step(expires_in=200))
    broker = start(google, source=the_machine(google))
    broker.until_token()
    for _ in range(50):
        assert broker.token().token
    assert google.count("metadataToken") == 1


def test_a_metadata_servers_token_is_no_credential(start: Starter, google: Standin) -> None:
    """aaif-goose/goose#8929: it was kept as if it were the login, and died after an hour."""
    google.script("metadataToken", Step(expires_in=1))
    google.script(MINT, Step(life_s=1.5))
    broker = start(google, source=the_machine(google))
    first = broker.until_token().token
    eventually("the end of both", lambda: broker.status()["profiles"][0]["token"]["state"]
               == "expired")
    assert broker.until_token().token != first
    assert {call.principal for call in google.calls_of(MINT)} == {VM_ACCOUNT}
    assert google.count("metadataToken") == google.count(MINT) == 2


@pytest.mark.parametrize("step", [Step(status=429), Step(reset=True), Step(status=503)], ids=repr)
def test_a_busy_token_service_ends_nothing(start: Starter, google: Standin, step: Step) -> None:
    """google-github-actions/auth#427, #532: throttling and resets ended the job."""
    google.script("sts", step)
    broker = start(google, source=from_file(google.write_external_account()))
    assert explanation(broker.token())[0] == TEMPORARY
    broker.until_token()
    assert google.count("sts") == 2


def test_a_refused_token_costs_one_exchange(start: Starter, google: Standin) -> None:
    """google-cloud-java#14212: a 401 cost two to four subject tokens; tries are made at one layer."""
    google.new_subject_token()
    google.script(MINT, Step(reason="ACCESS_TOKEN_EXPIRED"))
    path = google.write_external_account(source={"url": google.subject_token_url})
    broker = start(google, source=from_file(path, subject_token_hosts="127.0.0.1"))
    assert explanation(broker.token())[0] == TEMPORARY
    assert [google.count(kind) for kind in ("subjectToken", "sts", MINT)] == [1, 1, 1]
    broker.until_token()
    assert [google.count(kind) for kind in ("subjectToken", "sts", MINT)] == [2, 2, 2]


def test_a_session_that_is_over_is_not_tried_again(broker: Broker, google: Standin) -> None:
    """anthropics/blobfile#2: invalid_rapt was tried nine times and more, with growing sleeps."""
    google.always("token", Step(error_subtype="invalid_rapt"))
    for _ in range(20):
        assert explanation(broker.token())[0] == LOGIN_EXPIRED
    assert google.count("token") == 1


def test_a_lifetime_of_12_hours_is_googles_to_refuse(start: Starter, google: Standin) -> None:
    """googleapis/google-api-go-client#1185: the client had a limit of its own, of an hour."""
    long = google.add_account("long@my-project.iam.gserviceaccount.com", long_lifetime=True).email
    google.grant(USER, long)
    broker = start(google, profiles={"long": {"service_account": long, "lifetime": "12h"},
                                     "not": {"lifetime": "12h"}})
    assert broker.token("long").expires_in > 43000
    assert google.calls_of(MINT)[0].body["lifetime"] == "43200s"
    assert broker.token("not").status == 403
    broker.wait_for_log("http_status=400 .*allowServiceAccountCredentialLifetimeExtension")


def test_scopes_are_the_profiles_whatever_the_login_impersonates(start: Starter,
                                                                 google: Standin) -> None:
    """google-auth-library-python#1864: scopes were lost with an impersonated login."""
    google.add_account(MIDDLE)
    google.grant(USER, MIDDLE)
    google.grant(MIDDLE, ACCOUNT)
    broker = start(google, source=from_file(google.write_impersonated(account=MIDDLE)),
                   profiles={"one": {"scopes": STORAGE}, "two": {}})
    for profile, scopes in (("one", (STORAGE,)), ("two", (CLOUD_PLATFORM,))):
        issued = google.token_info(broker.until_token(profile).token)
        assert issued is not None and issued.scopes == scopes and issued.principal == ACCOUNT


def test_an_account_that_was_deleted_is_said_to_be_gone(broker: Broker, google: Standin) -> None:
    """googleapis/google-cloud-php#3622, google-api-ruby-client#720: "account not found"."""
    google.script(MINT, Step(life_s=20))
    assert broker.token().token
    google.remove_account(ACCOUNT)
    google.script(MINT, Step(status=404))
    assert explanation(broker.token())[0] == NO_ACCOUNT
    broker.wait_for_log("http_status=404 .*none was deleted")


def test_a_source_that_is_disabled_is_said_to_be(start: Starter, google: Standin) -> None:
    """google-api-ruby-client#720: "Robot is disabled."; what to do about it was for others to find."""
    google.disable(SOURCE_ACCOUNT)
    broker = start(google, source=from_file(google.write_service_account()))
    assert explanation(broker.token())[0] == NOT_ALLOWED
    broker.wait_for_log("step=generateAccessToken http_status=401 .*class=permanent .*"
                        f"disabled .*keys create .* --iam-account={SOURCE_ACCOUNT}")
    google.disable(SOURCE_ACCOUNT, False)
    google.write_service_account(private_key_hint="another file")
    broker.until_token()
    assert google.count(MINT) == 2
