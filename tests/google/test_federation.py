# SPDX-License-Identifier: Apache-2.0
"""The token service, the subject tokens' URL and the machine's metadata server bite."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator
from urllib.parse import quote, urlencode

import pytest

from .client import DEADLINE_S, MINT, Reply, connect, mint, post
from .federation import JWT_TYPE, SAML2_TYPE, WORKFORCE, WORKLOAD
from .script import Step
from .standin import ACCOUNT, PROJECT, SOURCE_ACCOUNT, VM_ACCOUNT, Standin
from .state import CLOUD_PLATFORM, IAM_SCOPE

FORM = "application/x-www-form-urlencoded"
TOKEN_PATH = "/computeMetadata/v1/instance/service-accounts/default/token"


def options(project: str = PROJECT) -> str:
    return quote(json.dumps({"userProject": project}))


def exchange(google: Standin, audience: str = WORKLOAD, basic: str | None = None,
             **changed: str | None) -> Reply:
    known = audience if audience in (WORKLOAD, WORKFORCE) else WORKLOAD
    fields = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "audience": audience, "scope": CLOUD_PLATFORM,
        "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "subject_token": google.new_subject_token(known), "subject_token_type": JWT_TYPE,
        **changed,
    }
    headers = {} if basic is None else {
        "Authorization": "Basic " + base64.b64encode(basic.encode()).decode()}
    body = urlencode({name: value for name, value in fields.items() if value is not None})
    return post(google, "/v1/token", body, content_type=FORM, **headers)


def metadata(google: Standin, path: str, flavor: str | None = "Google", **headers: str) -> Reply:
    connection = http.client.HTTPConnection("127.0.0.1", google.http_port, timeout=DEADLINE_S)
    sent = dict(headers) if flavor is None else {"Metadata-Flavor": flavor, **headers}
    try:
        connection.request("GET", path, headers=sent)
        return Reply(connection.getresponse())
    finally:
        connection.close()


# the token service


def test_a_subject_token_buys_a_token_that_mints(google: Standin) -> None:
    reply = exchange(google)
    assert reply.status == 200
    assert set(reply.json) == {"access_token", "issued_token_type", "token_type", "expires_in"}
    assert mint(google, reply.json["access_token"]).status == 200
    assert google.calls[-1].principal == google.principal()
    assert google.new_subject_token() in google.secrets()


@pytest.mark.parametrize("changed, error", [
    ({"grant_type": "refresh_token"}, "unsupported_grant_type"),
    ({"grant_type": None}, "invalid_request"),
    ({"audience": WORKLOAD + "x"}, "invalid_target"),
    ({"audience": ""}, "invalid_request"),
    ({"scope": "https://www.googleapis.com/auth/drive"}, "invalid_scope"),
    ({"scope": f"{CLOUD_PLATFORM}  {IAM_SCOPE}"}, "invalid_scope"),
    ({"scope": None}, "invalid_request"),
    ({"requested_token_type": JWT_TYPE}, "invalid_request"),
    ({"requested_token_type": None}, "invalid_request"),
    ({"subject_token": "eyJ.x.y"}, "invalid_grant"),
    ({"subject_token": None}, "invalid_request"),
    ({"subject_token_type": "urn:ietf:params:aws:token-type:aws4_request"}, "invalid_request"),
    ({"subject_token_type": None}, "invalid_request"),
    ({"options": options()}, "invalid_request"),
    ({"client_id": "x"}, "invalid_request"),
])
def test_a_wrong_exchange_is_refused(google: Standin, changed: dict[str, str], error: str) -> None:
    reply = exchange(google, **changed)
    assert reply.json["error"] == error and reply.status in (400, 401)


def test_a_newline_behind_the_subject_token_is_seen(google: Standin) -> None:
    token = google.new_subject_token()
    assert exchange(google, subject_token=token + "\n").json["error"] == "invalid_request"


def test_an_old_subject_token_is_stale(google: Standin) -> None:
    """google-cloud-go#12440"""
    token = google.new_subject_token(life_s=-1)
    reply = exchange(google, subject_token=token)
    assert reply.json["error"] == "invalid_grant"
    assert "is stale to sign-in" in reply.json["error_description"]


def test_a_subject_that_the_condition_does_not_admit_is_refused(google: Standin) -> None:
    provider = google.state.federation.providers[WORKLOAD]
    provider.condition = False
    try:
        assert exchange(google).json["error"] == "unauthorized_client"
    finally:
        provider.condition = True


def test_a_workforce_pool_wants_a_project_escaped_twice(google: Standin) -> None:
    assert exchange(google, WORKFORCE).json["error"] == "invalid_request"
    assert exchange(google, WORKFORCE, options=options()).status == 200
    once = json.dumps({"userProject": PROJECT})
    assert exchange(google, WORKFORCE, options=once).json["error"] == "invalid_request"
    assert exchange(google, WORKFORCE, options=options("foreign")).status == 403


@pytest.fixture
def with_client(google: Standin) -> Iterator[Standin]:
    provider = google.state.federation.providers[WORKFORCE]
    provider.client = ("client", "s3cret:of it")
    yield google
    provider.client = None


def test_a_client_authenticates_by_basic(with_client: Standin) -> None:
    assert exchange(with_client, WORKFORCE, "client:s3cret:of it").status == 200
    for basic in (None, "client:", "other:s3cret:of it"):
        reply = exchange(with_client, WORKFORCE, basic)
        assert (reply.status, reply.json["error"]) == (401, "invalid_client")
    assert exchange(with_client, WORKFORCE, "client:s3cret:of it",
                    options=options()).json["error"] == "invalid_request"
    assert exchange(with_client, basic="client:s3cret:of it").json["error"] == "invalid_client"


def test_the_token_service_fails_as_it_is_told(google: Standin) -> None:
    google.script("sts", Step(status=503), Step(oauth_error="invalid_target"),
                  Step(expires_in="3599"), Step(missing="expires_in"))
    assert exchange(google).status == 503
    assert exchange(google).json["error"] == "invalid_target"
    assert exchange(google, subject_token_type=SAML2_TYPE).json["expires_in"] == "3599"
    assert "expires_in" not in exchange(google).json
    assert google.count("sts") == 4


# the subject tokens' URL


def test_the_url_gives_the_newest_subject_token(google: Standin) -> None:
    token = google.new_subject_token()
    google.state.subject_headers = {"X-Key": "k3y"}
    connection = connect(google)
    answers = []
    for path, headers in (("/subject-token", {}), ("/subject-token", {"X-Key": "k3y"}),
                          ("/subject-token?format=json", {"X-Key": "k3y"})):
        connection.request("GET", path, headers=headers)
        answers.append(Reply(connection.getresponse()))
    connection.close()
    google.state.subject_headers = {}
    assert [reply.status for reply in answers] == [403, 200, 200]
    assert answers[1].body.decode() == token + "\n"
    assert answers[2].json["value"] == token


# the machine's metadata server


def test_the_machine_has_a_token_of_its_own(google: Standin) -> None:
    reply = metadata(google, TOKEN_PATH)
    assert reply.status == 200 and reply.headers["Metadata-Flavor"] == "Google"
    assert set(reply.json) == {"access_token", "expires_in", "token_type"}
    assert metadata(google, TOKEN_PATH).json["access_token"] == reply.json["access_token"]
    assert mint(google, reply.json["access_token"]).status == 200
    assert google.calls[-1].principal == VM_ACCOUNT


def test_the_machine_gives_another_token_in_the_last_five_minutes(google: Standin) -> None:
    """googleapis/google-cloud-cpp#8255"""
    google.state.vm.token = None
    first = metadata(google, TOKEN_PATH).json
    google.clock_offset_s = first["expires_in"] - 302
    assert metadata(google, TOKEN_PATH).json["access_token"] == first["access_token"]
    google.clock_offset_s += 5
    assert metadata(google, TOKEN_PATH).json["access_token"] != first["access_token"]
    google.state.vm.token = None


@pytest.mark.parametrize("headers", [{"flavor": None}, {"flavor": "google"},
                                     {"X-Forwarded-For": "10.0.0.1"}])
def test_the_machine_refuses_what_no_metadata_client_sends(google: Standin,
                                                           headers: dict[str, str]) -> None:
    reply = metadata(google, TOKEN_PATH, **headers)
    assert reply.status == 403 and reply.headers["Metadata-Flavor"] == "Google"


def test_the_machine_may_have_no_account_and_know_no_universe(google: Standin) -> None:
    base = "/computeMetadata/v1/"
    assert metadata(google, f"{base}universe/universe-domain").body == b"googleapis.com"
    email = metadata(google, f"{base}instance/service-accounts/default/email")
    assert email.body.decode() == VM_ACCOUNT
    google.state.vm.account = google.state.vm.universe = None
    for path in (f"{base}universe/universe-domain", TOKEN_PATH):
        assert metadata(google, path).status == 404
    google.state.vm.account, google.state.vm.universe = VM_ACCOUNT, "googleapis.com"
    google.script("metadataToken", Step(missing="Metadata-Flavor"), Step(status=503))
    assert metadata(google, TOKEN_PATH).headers["Metadata-Flavor"] is None
    assert metadata(google, TOKEN_PATH).status == 503


def test_a_machine_with_few_scopes_cannot_mint(google: Standin) -> None:
    """fluent/fluent-bit#5410"""
    google.state.vm.token = None
    google.state.vm.scopes = ("https://www.googleapis.com/auth/devstorage.read_only",)
    try:
        token = metadata(google, TOKEN_PATH).json["access_token"]
        assert mint(google, token).reason == "ACCESS_TOKEN_SCOPE_INSUFFICIENT"
    finally:
        google.state.vm.scopes, google.state.vm.token = (CLOUD_PLATFORM,), None


# the files


def test_the_files_are_what_gcloud_writes(google: Standin) -> None:
    external = json.loads(google.write_external_account(impersonate=SOURCE_ACCOUNT).read_text())
    assert external["type"] == "external_account" and external["audience"] == WORKLOAD
    assert external["service_account_impersonation_url"].endswith(
        f"/{SOURCE_ACCOUNT}:generateAccessToken")
    with open(external["credential_source"]["file"]) as file:
        assert exchange(google, subject_token=file.read().strip()).status == 200
    nested = json.loads(google.write_impersonated(delegates=(ACCOUNT,)).read_text())
    assert nested["source_credentials"]["type"] == "authorized_user"
    assert nested["delegates"] == [ACCOUNT]
    assert MINT.endswith(nested["service_account_impersonation_url"].rpartition("/")[2].replace(
        SOURCE_ACCOUNT, ACCOUNT))
