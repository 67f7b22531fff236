# SPDX-License-Identifier: Apache-2.0
"""sts.googleapis.com/v1/token: the token exchange of RFC 8693, every field checked."""

from __future__ import annotations

import base64
import hmac
import json
from urllib.parse import unquote

from .envelope import OAUTH_JSON_TYPE, Answer, Refusal, api_error, ok
from .federation import Provider
from .oauth2 import need, read_form, refuse
from .request import Request
from .script import Step
from .state import CLOUD_PLATFORM, IAM_SCOPE, State

TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
FIELDS = {"grant_type", "audience", "scope", "requested_token_type", "subject_token",
          "subject_token_type", "options"}


def _client(request: Request, provider: Provider) -> bool:
    """Whether a client has authenticated (RFC 6749 2.3.1, Basic)."""
    header = request.headers.get("authorization")
    if header is None:
        if provider.client is not None:
            raise refuse("invalid_client", "client authentication is missing")
        return False
    scheme, _, encoded = header.partition(" ")
    try:
        given = base64.b64decode(encoded, validate=True).decode()
    except ValueError:
        given = ""
    wanted = ":".join(provider.client or ("", ""))
    if scheme != "Basic" or not provider.client or not hmac.compare_digest(given, wanted):
        raise refuse("invalid_client", "The OAuth client was not found.")
    return True


def _subject(state: State, provider: Provider, form: dict[str, str]) -> str:
    """Who the subject token speaks for."""
    if need(form, "subject_token_type") not in provider.token_types:
        raise refuse("invalid_request", "Invalid subject_token_type.")
    token = need(form, "subject_token")
    if token != token.strip():
        raise refuse("invalid_request", "The subject token has blanks around it.")
    known = provider.subjects.get(token)
    if known is None:
        raise refuse("invalid_grant", "The subject token is of no issuer that is known.")
    subject, expires_s = known
    if expires_s <= state.now_s():
        raise refuse("invalid_grant",
                     f"ID Token issued at {int(expires_s) - 3600} is stale to sign-in.")
    if not provider.condition:
        raise refuse("unauthorized_client",
                     "The given credential is rejected by the attribute condition.")
    return provider.principal(subject)


def _options(state: State, form: dict[str, str], provider: Provider, principal: str,
             has_client: bool) -> None:
    """userProject: wanted of a workforce pool without a client, and of nobody else."""
    if "options" not in form:
        if provider.is_workforce and not has_client:
            raise refuse("invalid_request", "userProject is missing.")
        return
    try:
        options = json.loads(unquote(form["options"], errors="strict"))
    except ValueError:
        raise refuse("invalid_request", "options is no escaped JSON.") from None
    if form["options"].startswith("{") or not isinstance(options, dict) or set(options) != {
            "userProject"}:
        raise refuse("invalid_request", "options is not as it should be.")
    if has_client or not provider.is_workforce:
        raise refuse("invalid_request", "userProject has no place here.")
    if (principal, options["userProject"]) not in state.federation.projects:
        raise Refusal(api_error(403, reason="USER_PROJECT_DENIED",
                                note=f"{principal} may not use {options['userProject']}"))


def exchange(state: State, request: Request, step: Step) -> Answer:
    """POST /v1/token."""
    form = read_form(request)
    if set(form) - FIELDS:
        raise refuse("invalid_request", f"Unknown: {sorted(set(form) - FIELDS)}")
    if need(form, "grant_type") != TOKEN_EXCHANGE:
        raise refuse("unsupported_grant_type", "Invalid grant_type.")
    if need(form, "requested_token_type") != ACCESS_TOKEN:
        raise refuse("invalid_request", "Invalid requested_token_type.")
    scopes = tuple(need(form, "scope").split(" "))
    if not set(scopes) <= {CLOUD_PLATFORM, IAM_SCOPE}:
        raise refuse("invalid_scope", "Some requested scopes were invalid.")
    with state.lock:
        provider = state.federation.providers.get(need(form, "audience"))
        if provider is None:
            raise refuse("invalid_target",
                         "The target service indicated by the \"audience\" parameters is invalid.")
        has_client = _client(request, provider)
        principal = _subject(state, provider, form)
        _options(state, form, provider, principal, has_client)
        request.principal = principal
        life_s = state.source_life_s if step.life_s is None else step.life_s
        issued = state.issue(principal, scopes, life_s, minted=False, length=step.token_bytes)
    body = {
        "access_token": issued.token,
        "issued_token_type": ACCESS_TOKEN,
        "token_type": "Bearer",
        "expires_in": int(life_s) if step.expires_in is None else step.expires_in,
    }
    for name in step.dropped:
        body.pop(name, None)
    return ok(body, content_type=OAUTH_JSON_TYPE)


def subject_token(state: State, request: Request, step: Step) -> Answer:
    """GET /subject-token: another issuer's server, which wants its header where one is set."""
    headers, form = state.subject_headers, request.query.get("format")
    if any(request.headers.get(name.lower()) != value for name, value in headers.items()):
        return Answer(403, b"no\n", "text/plain", note="its header is missing")
    if form == ["json"]:
        return ok({"count": 1, "value": state.subject_token})
    return Answer(200, f"{state.subject_token}\n".encode(), "text/plain")
