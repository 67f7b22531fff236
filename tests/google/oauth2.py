# SPDX-License-Identifier: Apache-2.0
"""oauth2.googleapis.com/token: refresh tokens (RFC 6749 6) and JWT bearers (RFC 7523)."""

from __future__ import annotations

import hmac

from . import jwt
from .envelope import OAUTH_JSON_TYPE, Answer, Refusal, oauth_error, ok
from .request import Request
from .script import Step
from .state import State

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_NO_STORE = [("Cache-Control", "no-cache, no-store, max-age=0, must-revalidate"),
             ("Pragma", "no-cache"), ("Expires", "Mon, 01 Jan 1990 00:00:00 GMT")]


def refuse(error: str, description: str, **more: object) -> Refusal:
    """An error of RFC 6749 5.2."""
    note = f"{error}: {description}"
    return Refusal(oauth_error(error, description, note=note, **more))  # type: ignore[arg-type]


def read_form(request: Request) -> dict[str, str]:
    """Form content type, no parameter twice (RFC 6749 3.2)."""
    if request.media_type != "application/x-www-form-urlencoded":
        raise refuse("invalid_request", f"Content-Type is {request.media_type!r}, not a form")
    try:
        pairs = request.form()
    except ValueError:
        raise refuse("invalid_request", "Malformed form") from None
    form = dict(pairs)
    if len(form) != len(pairs):
        raise refuse("invalid_request", "OAuth 2 parameters can only have a single value")
    return form


def need(form: dict[str, str], name: str) -> str:
    """A field that must be there, and not empty."""
    if not form.get(name):
        raise refuse("invalid_request", f"Missing required parameter: {name}")
    return form[name]


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _refresh(state: State, form: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    """RFC 6749 6: the client's own refresh token, scopes no wider than granted."""
    client_id = need(form, "client_id")
    known = state.clients.get(client_id)
    if known is None:
        raise refuse("invalid_client", "The OAuth client was not found.")
    if not _same(need(form, "client_secret"), known):
        raise refuse("invalid_client", "Unauthorized")
    login = state.logins.get(need(form, "refresh_token"))
    if login is None or login.client_id != client_id:
        raise refuse("invalid_grant", "Token has been expired or revoked.")
    asked = tuple(form.get("scope", "").split())
    if not set(asked) <= set(login.scopes):
        raise refuse("invalid_scope", "Some requested scopes were invalid.")
    return login.principal, asked or login.scopes


def _assertion(state: State, form: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    """RFC 7523 3, as Google's server-to-server page narrows it: RS256, one hour, a scope."""
    assertion = need(form, "assertion")
    try:
        claims = jwt.verify(assertion, state.keys_of, need_kid=False)
        jwt.check_times(claims, state.now_s())
    except jwt.JwtError as err:
        if "iss is not known" in str(err):
            text = "Invalid grant: account not found"
        elif err.signature:
            text = "Invalid JWT Signature."
        else:
            text = ("Invalid JWT: Token must be a short-lived token (60 minutes) and in a "
                    f"reasonable timeframe. ({err})")
        raise refuse("invalid_grant", text) from None
    audience = claims.get("aud")
    if not isinstance(audience, str) or audience not in state.token_audiences:
        raise refuse("invalid_grant", "Invalid JWT: Failed audience check.")
    if claims.get("sub", claims["iss"]) != claims["iss"]:
        raise refuse("unauthorized_client", "Client is unauthorized to retrieve access tokens "
                      "using this method, or client not authorized for any of the scopes "
                      "requested.")
    scope = claims.get("scope")
    if not isinstance(scope, str) or not scope.split():
        raise refuse("invalid_scope", "Invalid OAuth scope or ID token audience provided.")
    return claims["iss"], tuple(scope.split())


def note_assertion(state: State, request: Request) -> None:
    """Record an assertion in the form, whatever will be answered."""
    body = request.recorded_body()
    if isinstance(body, dict) and isinstance(body.get("assertion"), str):
        state.saw_assertion(body["assertion"])


def token(state: State, request: Request, step: Step) -> Answer:
    """POST /token."""
    form = read_form(request)
    grant_type = need(form, "grant_type")
    with state.lock:
        if grant_type == "refresh_token":
            principal, scopes = _refresh(state, form)
        elif grant_type == JWT_BEARER:
            principal, scopes = _assertion(state, form)
        else:
            raise refuse("unsupported_grant_type", f"Invalid grant_type: {grant_type}")
        request.principal = principal
        life_s = state.source_life_s if step.life_s is None else step.life_s
        issued = state.issue(principal, scopes, life_s, minted=False, length=step.token_bytes)
    body = {
        "access_token": issued.token,
        "expires_in": int(life_s) if step.expires_in is None else step.expires_in,
        "scope": " ".join(scopes),
        "token_type": "Bearer",
    }
    for name in step.dropped:
        body.pop(name, None)
    return ok(body, content_type=OAUTH_JSON_TYPE, headers=list(_NO_STORE))
