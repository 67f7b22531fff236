# SPDX-License-Identifier: Apache-2.0
"""The stand-in's checks bite."""

from __future__ import annotations

import datetime
import json
import re
import time
from typing import Any
from urllib.parse import urlencode

import pytest

from . import credentials, jwt
from .client import (ASK, GEMINI, MINT, OTHER, Reply, assertion, bearer_grant, connect, mint, post,
                     refresh)
from .envelope import GET_ACCESS_TOKEN
from .standin import ACCOUNT, PROJECT, SOURCE_ACCOUNT, USER, Standin
from .state import CLOUD_PLATFORM

CLAUDE = f"/v1/projects/{PROJECT}/locations/us-east5/publishers/anthropic/models/claude-sonnet"


# the token endpoint


def test_a_refresh_token_buys_a_source_token(google: Standin) -> None:
    reply = refresh(google)
    assert reply.status == 200 and reply.headers["Date"]
    assert set(reply.json) == {"access_token", "expires_in", "scope", "token_type"}
    assert reply.json["access_token"].startswith("ya29.a0")
    assert reply.json["expires_in"] == 3599 and reply.json["token_type"] == "Bearer"
    assert CLOUD_PLATFORM in reply.json["scope"].split()
    assert mint(google, reply.json["access_token"]).status == 200


@pytest.mark.parametrize("changed, status, error", [
    ({"refresh_token": "1//0wrong"}, 400, "invalid_grant"),
    ({"client_secret": "GOCSPX-wrong"}, 401, "invalid_client"),
    ({"client_id": "1-x.apps.googleusercontent.com"}, 401, "invalid_client"),
    ({"scope": "https://www.googleapis.com/auth/drive"}, 400, "invalid_scope"),
    ({"grant_type": "password"}, 400, "unsupported_grant_type"),
    ({"refresh_token": ""}, 400, "invalid_request"),
])
def test_a_wrong_refresh_is_refused(google: Standin, changed: dict[str, str], status: int,
                                    error: str) -> None:
    reply = refresh(google, **changed)
    assert (reply.status, reply.json["error"]) == (status, error)
    assert reply.json["error_description"]


def test_the_token_endpoint_wants_a_form(google: Standin) -> None:
    info = google.adc()
    fields = {name: info[name] for name in ("client_id", "client_secret", "refresh_token")}
    fields["grant_type"] = "refresh_token"
    for body in (urlencode(fields), json.dumps(fields)):
        reply = post(google, "/token", body, content_type="application/json")
        assert (reply.status, reply.json["error"]) == (400, "invalid_request")


def test_a_parameter_given_twice_is_refused(google: Standin) -> None:
    reply = post(google, "/token", "grant_type=refresh_token&grant_type=refresh_token",
                 content_type="application/x-www-form-urlencoded")
    assert (reply.status, reply.json["error"]) == (400, "invalid_request")


def test_a_revoked_login_ends_and_a_new_one_works(google: Standin) -> None:
    info = google.new_login()
    fields = {name: info[name] for name in ("client_id", "client_secret", "refresh_token")}
    assert refresh(google, **fields).status == 200
    google.revoke_login(info)
    assert refresh(google, **fields).json["error"] == "invalid_grant"
    assert refresh(google).status == 200


def test_a_jwt_bearer_buys_a_source_token(google: Standin) -> None:
    for audience in ("https://oauth2.googleapis.com/token", f"{google.url}/token"):
        reply = bearer_grant(google, aud=audience)
        assert reply.status == 200, reply.body
        assert mint(google, reply.json["access_token"]).status == 200


@pytest.mark.parametrize("claims, error", [
    ({"aud": "https://iamcredentials.googleapis.com/"}, "invalid_grant"),
    ({"aud": ["https://oauth2.googleapis.com/token"]}, "invalid_grant"),
    ({"iss": "nobody@my-project.iam.gserviceaccount.com"}, "invalid_grant"),
    ({"exp": 1}, "invalid_grant"),
    ({"iat": None}, "invalid_grant"),
    ({"scope": None}, "invalid_scope"),
    ({"sub": USER}, "unauthorized_client"),
    ({"header": {"alg": "none"}}, "invalid_grant"),
])
def test_a_wrong_jwt_bearer_is_refused(google: Standin, claims: dict[str, Any],
                                       error: str) -> None:
    assert bearer_grant(google, **claims).json["error"] == error


# self-signed JWT at generateAccessToken


def test_a_self_signed_jwt_mints(google: Standin) -> None:
    signed = assertion(google)
    reply = mint(google, signed)
    assert reply.status == 200
    assert google.calls[-1].principal == SOURCE_ACCOUNT
    assert google.assertions[-1] == signed and signed not in google.replays
    assert mint(google, signed).status == 200 and signed in google.replays


@pytest.mark.parametrize("claims, why", [
    ({"aud": "https://iamcredentials.googleapis.com"}, "aud"),
    ({"aud": "https://oauth2.googleapis.com/token"}, "aud"),
    ({"sub": None}, "sub"),
    ({"sub": USER}, "sub"),
    ({"iss": OTHER, "sub": OTHER}, "iss"),
    ({"iat": "now"}, "iat"),
    ({"exp": float("nan")}, "JSON"),
    ({"scope": CLOUD_PLATFORM}, "exclude"),
    ({"header": {"kid": "0" * 40}}, "kid"),
    ({"header": {"kid": None}}, "kid"),
    ({"header": {"alg": "HS256"}}, "alg"),
])
def test_a_wrong_self_signed_jwt_is_refused(google: Standin, claims: dict[str, Any],
                                            why: str) -> None:
    reply = mint(google, assertion(google, **claims))
    assert reply.status == 401 and reply.error["status"] == "UNAUTHENTICATED"
    assert reply.headers["WWW-Authenticate"].startswith("Bearer ")
    assert why in google.calls[-1].note


@pytest.mark.parametrize("iat_s, exp_s, status", [
    (0, 3600, 200), (-30, 3570, 200), (59, 3600, 200),
    (0, 3601, 401), (-30, 3571, 401), (90, 3600, 401), (-3600, -1, 401), (0, 0, 401),
])
def test_the_window_of_an_assertion(google: Standin, iat_s: int, exp_s: int, status: int) -> None:
    now = int(google.state.now_s())
    assert mint(google, assertion(google, iat=now + iat_s, exp=now + exp_s)).status == status


def test_an_expired_assertion_is_named_so(google: Standin) -> None:
    signed = assertion(google)
    google.clock_offset_s = 3700
    assert mint(google, signed).reason == "ACCESS_TOKEN_EXPIRED"


def test_a_wrong_signature_is_refused(google: Standin) -> None:
    info = google.service_account_key()
    now = int(time.time())
    forged = jwt.encode({"iss": SOURCE_ACCOUNT, "sub": SOURCE_ACCOUNT, "iat": now,
                         "exp": now + 600, "aud": "https://iamcredentials.googleapis.com/"},
                        credentials.shared_rsa_key("a stranger"), info["private_key_id"])
    assert mint(google, forged).status == 401 and "signature" in google.calls[-1].note
    head, payload, signature = assertion(google).split(".")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    same_bytes = signature[:-1] + alphabet[alphabet.index(signature[-1]) | 1]
    for spelled in (f"{signature}==", same_bytes):
        assert mint(google, f"{head}.{payload}.{spelled}").status == 401


# generateAccessToken


def test_a_mint_answers_a_token_and_its_expiry(google: Standin) -> None:
    reply = mint(google, lifetime="900s")
    assert set(reply.json) == {"accessToken", "expireTime"}
    assert reply.json["accessToken"].startswith("ya29.c.")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", reply.json["expireTime"])
    assert reply.headers["Content-Type"] == "application/json; charset=UTF-8"
    assert reply.headers["Date"].endswith(" GMT")
    expires = datetime.datetime.fromisoformat(reply.json["expireTime"].replace("Z", "+00:00"))
    assert abs(expires.timestamp() - google.state.now_s() - 900) < 5
    issued = google.token_info(reply.json["accessToken"])
    assert issued is not None and issued.principal == ACCOUNT


def test_the_account_may_be_named_with_an_escaped_at(google: Standin) -> None:
    assert mint(google, path=MINT.replace("@", "%40")).status == 200


def test_a_project_in_the_place_of_the_dash_is_refused(google: Standin) -> None:
    reply = mint(google, path=MINT.replace("/-/", f"/{PROJECT}/"))
    assert (reply.status, reply.error["status"]) == (400, "INVALID_ARGUMENT")


@pytest.mark.parametrize("body", [
    {"lifetime": "3600"}, {"lifetime": 3600}, {"lifetime": "0s"}, {"lifetime": "3601s"},
    {"lifetime": "-1s"}, {"lifetime": "1h"}, {"lifetime": "3600.0000000001s"},
    {"lifetime": "3600s\n"},
    {"scope": []}, {"scope": CLOUD_PLATFORM}, {"scope": None}, {"scope": ["cloud-platform"]},
    {"scope": [f"{CLOUD_PLATFORM} {CLOUD_PLATFORM}"]}, {"scope": [1]},
    {"delegates": [OTHER]}, {"delegates": f"projects/-/serviceAccounts/{OTHER}"},
    {"delegates": [f"projects/p/serviceAccounts/{OTHER}"]},
    {"scopes": [CLOUD_PLATFORM]}, {"audience": "x"},
])
def test_a_wrong_body_is_refused(google: Standin, body: dict[str, Any]) -> None:
    reply = mint(google, **body)
    assert (reply.status, reply.error["status"]) == (400, "INVALID_ARGUMENT")


@pytest.mark.parametrize("raw", ["", "[]", "{", '{"scope":["https://a/"],"scope":["https://a/"]}',
                                 "[" * 100000])
def test_a_body_that_is_no_json_object_is_refused(google: Standin, raw: str) -> None:
    assert post(google, MINT, raw, google.issue_source_token()).status == 400


def test_a_body_of_another_type_is_refused(google: Standin) -> None:
    body = json.dumps({"scope": [CLOUD_PLATFORM]})
    assert post(google, MINT, body, google.issue_source_token(),
                "application/x-www-form-urlencoded").status == 400


def test_optional_fields_may_be_absent_or_null(google: Standin) -> None:
    assert mint(google, delegates=None, lifetime=None).status == 200
    assert mint(google, delegates=[], lifetime="299.5s").status == 200
    assert post(google, MINT, {"scope": [CLOUD_PLATFORM]}, google.issue_source_token(),
                "application/json; charset=utf-8").status == 200


def test_only_listed_accounts_get_twelve_hours(google: Standin) -> None:
    email = "long@my-project.iam.gserviceaccount.com"
    google.add_account(email, long_lifetime=True)
    google.grant(USER, email)
    path = MINT.replace(ACCOUNT, email)
    assert mint(google, path=path, lifetime="43200s").status == 200
    assert mint(google, path=path, lifetime="43201s").status == 400


def test_without_a_valid_source_token_nothing_is_minted(google: Standin) -> None:
    body = {"scope": [CLOUD_PLATFORM]}
    reply = post(google, MINT, body)
    assert (reply.status, reply.reason) == (401, "CREDENTIALS_MISSING")
    assert mint(google, "ya29.a0made-up").status == 401
    expired = google.issue_source_token(life_s=-1)
    assert mint(google, expired).reason == "ACCESS_TOKEN_EXPIRED"
    narrow = google.issue_source_token(scopes=("https://www.googleapis.com/auth/devstorage",))
    reply = mint(google, narrow)
    assert (reply.status, reply.reason) == (403, "ACCESS_TOKEN_SCOPE_INSUFFICIENT")


def test_a_foreign_account_is_refused_and_an_unknown_one_not_found(google: Standin) -> None:
    reply = mint(google, path=MINT.replace(ACCOUNT, OTHER))
    info = reply.error["details"][0]
    assert reply.status == 403 and reply.error["status"] == "PERMISSION_DENIED"
    assert (info["reason"], info["domain"]) == ("IAM_PERMISSION_DENIED", "iam.googleapis.com")
    assert info["metadata"]["permission"] == GET_ACCESS_TOKEN
    reply = mint(google, path=MINT.replace("agent@", "agnet@"))
    assert (reply.status, reply.error["status"]) == (404, "NOT_FOUND")


def test_a_chain_of_delegates_needs_every_grant(google: Standin) -> None:
    names = [f"d{i}@my-project.iam.gserviceaccount.com" for i in (1, 2, 3)]
    for name in names:
        google.add_account(name)
    first, second, target = names
    path = MINT.replace(ACCOUNT, target)
    delegates = [f"projects/-/serviceAccounts/{name}" for name in (first, second)]
    google.grant(USER, first)
    google.grant(second, target)
    assert mint(google, path=path, delegates=delegates).status == 403
    google.grant(first, second)
    assert mint(google, path=path, delegates=delegates).status == 200
    assert mint(google, path=path, delegates=delegates[::-1]).status == 403
    assert mint(google, path=path).status == 403


def test_a_quota_project_must_be_the_callers(google: Standin) -> None:
    body, token = {"scope": [CLOUD_PLATFORM]}, google.issue_source_token()
    assert post(google, MINT, body, token, x_goog_user_project=PROJECT).status == 200
    reply = post(google, MINT, body, token, x_goog_user_project="foreign")
    assert (reply.status, reply.reason) == (403, "USER_PROJECT_DENIED")


def test_permissions_are_tested_for_the_caller(google: Standin) -> None:
    path = MINT.replace("generateAccessToken", "testIamPermissions")
    body = {"permissions": [GET_ACCESS_TOKEN, "iam.serviceAccounts.signJwt"]}
    reply = post(google, path, body, google.issue_source_token())
    assert reply.json == {"permissions": [GET_ACCESS_TOKEN]}
    assert post(google, path, body, google.issue_minted_token()).json == {}
    # AIP-4111: the audience of a JWT is the one service that takes it
    signed = assertion(google, aud="https://iam.googleapis.com/")
    assert post(google, path, body, signed).json == {"permissions": [GET_ACCESS_TOKEN]}
    assert google.calls[-1].principal == SOURCE_ACCOUNT and mint(google, signed).status == 401
    reply = post(google, path, body, assertion(google))
    assert (reply.status, reply.reason) == (401, "ACCESS_TOKEN_TYPE_UNSUPPORTED")


# the models


def test_only_a_minted_token_of_an_account_with_access_reaches_a_model(google: Standin) -> None:
    path = f"{GEMINI}:generateContent"
    token = mint(google).json["accessToken"]
    reply = post(google, path, ASK, token)
    assert reply.status == 200
    candidate = reply.json["candidates"][0]
    assert candidate["content"]["parts"][0]["text"] and candidate["finishReason"] == "STOP"
    assert reply.json["usageMetadata"]["totalTokenCount"] > 0
    assert post(google, path, ASK).status == 401
    assert post(google, path, ASK, "ya29.c.made-up").status == 401
    assert post(google, path, ASK, assertion(google)).status == 401
    assert post(google, path, ASK, google.issue_source_token()).status == 403
    reply = post(google, path.replace(PROJECT, "other-project"), ASK, token)
    assert (reply.status, reply.reason) == (403, "IAM_PERMISSION_DENIED")
    assert post(google, path, ASK, google.issue_minted_token(OTHER)).status == 403
    assert post(google, path, {"contents": []}, token).status == 400


def test_an_expired_minted_token_is_refused(google: Standin) -> None:
    token = mint(google, lifetime="600s").json["accessToken"]
    path = f"{GEMINI}:generateContent"
    google.clock_offset_s = 599
    assert post(google, path, ASK, token).status == 200
    google.clock_offset_s = 601
    assert post(google, path, ASK, token).reason == "ACCESS_TOKEN_EXPIRED"


def test_a_disabled_account_loses_its_tokens_and_gets_them_back(google: Standin) -> None:
    token, path = google.issue_minted_token(), f"{GEMINI}:generateContent"
    google.disable(ACCOUNT)
    assert post(google, path, ASK, token).status == 401
    google.disable(ACCOUNT, False)
    assert post(google, path, ASK, token).status == 200


def test_a_stream_comes_as_events_or_as_an_array(google: Standin) -> None:
    token = google.issue_minted_token()
    path = f"{GEMINI}:streamGenerateContent".replace("/v1/", "/v1beta1/")
    reply = post(google, f"{path}?alt=sse", ASK, token)
    assert reply.headers["Content-Type"] == "text/event-stream"
    assert reply.headers["Transfer-Encoding"] == "chunked"
    events = reply.body.decode().split("\r\n\r\n")
    assert events.pop() == "" and len(events) == 2
    parts = [json.loads(event.removeprefix("data: ")) for event in events]
    reply = post(google, path, ASK, token)
    assert reply.headers["Content-Type"].startswith("application/json")
    for chunks in (parts, reply.json):
        text = "".join(c["candidates"][0]["content"]["parts"][0]["text"] for c in chunks)
        assert text == google.state.model_text
        assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"


def test_an_anthropic_model_answers_whole_or_as_events(google: Standin) -> None:
    token = google.issue_minted_token()
    body = {"anthropic_version": "vertex-2023-10-16", "max_tokens": 10,
            "messages": [{"role": "user", "content": "Say hello."}]}
    reply = post(google, f"{CLAUDE}:rawPredict", body, token)
    assert reply.json["content"][0]["text"] == google.state.model_text
    reply = post(google, f"{CLAUDE}:streamRawPredict", {**body, "stream": True}, token)
    names = re.findall(r"^event: (\S+)$", reply.body.decode(), re.MULTILINE)
    assert names[0] == "message_start" and names[-1] == "message_stop"
    assert names.count("content_block_delta") == 2
    assert post(google, f"{CLAUDE}:rawPredict", {"messages": body["messages"]},
                token).status == 400


def test_a_model_calls_the_tools_that_it_is_offered(google: Standin) -> None:
    token = google.issue_minted_token()
    path = f"{GEMINI}:generateContent"
    tools = [{"functionDeclarations": [{"name": "look"}]}]
    google.call_tool("look", at="/")
    google.call_tool("look", at="/tmp")
    for body, part in [(ASK, {"text": google.state.model_text}),
                       ({**ASK, "tools": [{"functionDeclarations": [{"name": "other"}]}]},
                        {"text": google.state.model_text}),
                       ({**ASK, "tools": tools},
                        {"functionCall": {"name": "look", "args": {"at": "/"}}}),
                       ({**ASK, "tools": tools},
                        {"functionCall": {"name": "look", "args": {"at": "/tmp"}}}),
                       ({**ASK, "tools": tools}, {"text": google.state.model_text})]:
        reply = post(google, path, body, token)
        assert reply.json["candidates"][0]["content"]["parts"] == [part]


def test_an_anthropic_model_calls_a_tool_in_events(google: Standin) -> None:
    google.call_tool("look", at="/")
    body = {"anthropic_version": "vertex-2023-10-16", "max_tokens": 10, "stream": True,
            "tools": [{"name": "look", "input_schema": {"type": "object"}}],
            "messages": [{"role": "user", "content": "Look."}]}
    token = google.issue_minted_token()
    reply = post(google, f"{CLAUDE}:streamRawPredict", body, token)
    events = [json.loads(line) for line in re.findall(r"^data: (.*)$", reply.body.decode(), re.M)]
    of = {event["type"]: event for event in events}
    block = of["content_block_start"]["content_block"]
    assert (block["type"], block["name"], block["input"]) == ("tool_use", "look", {})
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert {delta["type"] for delta in deltas} == {"input_json_delta"}
    assert json.loads("".join(delta["partial_json"] for delta in deltas)) == {"at": "/"}
    assert of["message_delta"]["delta"]["stop_reason"] == "tool_use"
    reply = post(google, f"{CLAUDE}:streamRawPredict", body, token)
    texts = [json.loads(line)["delta"]["text"]
             for line in re.findall(r"^data: (.*text_delta.*)$", reply.body.decode(), re.M)]
    assert len(texts) == 2 and "".join(texts) == google.state.model_text


def test_a_model_that_is_denied_is_named_in_full(google: Standin) -> None:
    body = {"anthropic_version": "vertex-2023-10-16", "messages": [{"role": "user", "content": "?"}]}
    reply = post(google, f"{CLAUDE}:rawPredict".replace(PROJECT, "other-project"), body,
                 google.issue_minted_token())
    assert reply.status == 403
    assert "/publishers/anthropic/models/claude-sonnet" in reply.error["message"]


def test_a_bucket_is_listed_for_who_has_a_project(google: Standin) -> None:
    def listed(token: str) -> Reply:
        connection = connect(google)
        connection.request("GET", "/storage/v1/b/my-bucket/o?delimiter=%2F",
                           headers={"Authorization": f"Bearer {token}"})
        reply = Reply(connection.getresponse())
        connection.close()
        return reply
    reply = listed(google.issue_minted_token())
    assert [item["name"] for item in reply.json["items"]] == [google.state.model_text]
    assert listed("ya29.c.unknown").status == 401
    assert listed(google.issue_source_token()).status == 403


def test_anything_else_is_not_found(google: Standin) -> None:
    for path in ("/", "/v1/x", MINT.replace("generateAccessToken", "signJwt"),
                 GEMINI + ":rawPredict", "/_/calls", MINT + "/"):
        reply = post(google, path, {}, google.issue_source_token())
        assert (reply.status, reply.error["code"], reply.error["status"]) == (
            404, 404, "NOT_FOUND"), path
    connection = connect(google)
    connection.request("GET", MINT)
    assert Reply(connection.getresponse()).status == 404
    connection.close()


ROUTES = {"oauth2": "/token", "sts": "/v1/token", "iamcredentials": MINT,
          "iam": MINT.replace("generateAccessToken", "testIamPermissions")}


@pytest.mark.parametrize("api", ROUTES)
def test_an_api_has_nothing_of_another_s(google: Standin, api: str) -> None:
    connection = connect(google, google.url_of(api))
    for other, path in {**ROUTES, "models": f"{GEMINI}:generateContent"}.items():
        connection.request("POST", path, "{}", {"Content-Type": "application/json"})
        reply = Reply(connection.getresponse())
        assert (reply.status == 404) == (other != api), (other, reply.status)
        assert (google.calls[-1].kind == "other") == (other != api)
    connection.request("GET", "/subject-token")
    assert Reply(connection.getresponse()).status == 404
    connection.close()
