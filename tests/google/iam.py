# SPDX-License-Identifier: Apache-2.0
"""iamcredentials.googleapis.com and the one method of iam.googleapis.com that is needed."""

from __future__ import annotations

import datetime
import re
from typing import Any

from . import jwt
from .envelope import GET_ACCESS_TOKEN, IAM_DOMAIN, Answer, Refusal, api_error, bad_field, ok
from .request import Request
from .script import Step
from .state import CLOUD_PLATFORM, IAM_SCOPE, Account, State

SERVICE = "iamcredentials.googleapis.com"
METHOD = "google.iam.credentials.v1.IAMCredentials.GenerateAccessToken"
MAX_LIFETIME_NS = 3600 * 10**9
MAX_LONG_LIFETIME_NS = 43200 * 10**9
OIDC_SCOPES = frozenset({"openid", "email", "profile"})  # gcloud's own mints ask for openid


def authenticate(state: State, request: Request, *,
                 self_signed: str | None) -> tuple[str, set[str]]:
    """Who calls, and with which scopes; 401 otherwise (RFC 6750 3). A service that takes JWTs that
    accounts sign themselves is given by its audience."""
    bearer = request.bearer
    if bearer is None:
        raise Refusal(api_error(401, reason="CREDENTIALS_MISSING", note="no bearer token"))
    if jwt.looks_like_jwt(bearer):
        if self_signed is None:
            raise Refusal(api_error(401, reason="ACCESS_TOKEN_TYPE_UNSUPPORTED",
                                    note="a JWT where an access token is due"))
        return _self_signed(state, bearer, self_signed), {CLOUD_PLATFORM}
    with state.lock:
        token = state.tokens.get(bearer)
        if token is None:
            raise Refusal(api_error(401, reason="ACCESS_TOKEN_TYPE_UNSUPPORTED",
                                    note="no token that was issued here"))
        request.principal = token.principal
        if token.expires_ns <= state.now_ns():
            raise Refusal(api_error(401, reason="ACCESS_TOKEN_EXPIRED", note="token expired"))
        account = state.accounts.get(token.principal)
        if account is not None and account.disabled:
            raise Refusal(api_error(401, reason="ACCOUNT_STATE_INVALID", note="account disabled"))
        if token.principal.endswith(".gserviceaccount.com") and account is None:
            raise Refusal(api_error(401, reason="ACCOUNT_STATE_INVALID", note="account deleted"))
    return token.principal, set(token.scopes)


def _self_signed(state: State, bearer: str, audience: str) -> str:
    """A service account's own JWT as the bearer (AIP-4111, the audience form)."""
    try:
        claims = jwt.verify(bearer, state.keys_of, need_kid=True)
        if claims.get("sub") != claims["iss"]:
            raise jwt.JwtError("sub is not iss")
        if claims.get("aud") != audience:
            raise jwt.JwtError(f"aud is not {audience}")
        if "scope" in claims:
            raise jwt.JwtError("aud and scope exclude each other")
        jwt.check_times(claims, state.now_s())
    except jwt.JwtError as err:
        reason = "ACCESS_TOKEN_EXPIRED" if err.expired else "ACCESS_TOKEN_TYPE_UNSUPPORTED"
        raise Refusal(api_error(401, reason=reason, note=f"self-signed JWT: {err}")) from None
    return str(claims["iss"])


def need_scope(scopes: set[str], allowed: set[str], service: str, method: str) -> None:
    """403 ACCESS_TOKEN_SCOPE_INSUFFICIENT unless one of the scopes is there."""
    if not scopes & allowed:
        raise Refusal(api_error(403, reason="ACCESS_TOKEN_SCOPE_INSUFFICIENT",
                                metadata={"service": service, "method": method},
                                note="the token's scopes do not cover this API"))


def need_quota_project(state: State, request: Request, caller: str, service: str) -> None:
    """x-goog-user-project names a project that the caller may bill to (serviceusage)."""
    project = request.headers.get("x-goog-user-project")
    if project is not None and (caller, project) not in state.quota_projects:
        raise Refusal(api_error(403, reason="USER_PROJECT_DENIED",
                                metadata={"service": service, "consumer": f"projects/{project}"},
                                note=f"{caller} may not use quota project {project}"))


def json_object(request: Request, allowed: set[str] | None) -> dict[str, Any]:
    """The body: JSON by its content type, an object, no unknown name (proto3 JSON mapping)."""
    if request.media_type != "application/json":
        raise Refusal(api_error(400, "Invalid JSON payload received.",
                                note=f"Content-Type is {request.media_type!r}"))
    try:
        body = request.json()
    except ValueError as err:
        raise Refusal(api_error(400, f"Invalid JSON payload received. {err}",
                                note=f"body is not JSON: {err}")) from None
    if not isinstance(body, dict):
        raise Refusal(api_error(400, "Invalid JSON payload received. Root element must be a "
                                     "message.", note="body is not an object"))
    for name in body:
        if allowed is not None and name not in allowed:
            raise Refusal(bad_field(name, f'Invalid JSON payload received. Unknown name "{name}": '
                                          "Cannot find field."))
    return body


def _scopes(body: dict[str, Any]) -> tuple[str, ...]:
    scopes = body.get("scope")
    if not isinstance(scopes, list) or not scopes:
        raise Refusal(bad_field("scope", "an array with at least one scope is required"))
    for scope in scopes:
        if not isinstance(scope, str) or not (
                scope in OIDC_SCOPES or re.fullmatch(r"https://[!-~]+", scope)):
            raise Refusal(bad_field("scope", "not a scope"))
    return tuple(scopes)


def _lifetime_ns(body: dict[str, Any], account: Account) -> int:
    """google.protobuf.Duration in JSON; at most 1 h, or 12 h by organisation policy."""
    text = body.get("lifetime")
    if text is None:
        return MAX_LIFETIME_NS
    match = isinstance(text, str) and re.fullmatch(r"([0-9]{1,12})(?:\.([0-9]{1,9}))?s", text)
    if not match:
        raise Refusal(bad_field("lifetime", "Illegal duration format; duration must end with 's'"))
    lifetime = int(match[1]) * 10**9 + int((match[2] or "").ljust(9, "0"))
    limit = MAX_LONG_LIFETIME_NS if account.long_lifetime else MAX_LIFETIME_NS
    if not 0 < lifetime <= limit:
        raise Refusal(bad_field("lifetime", "the lifetime must be above 0s and at most "
                                            f"{limit // 10**9}s"))
    return lifetime


def _delegates(body: dict[str, Any]) -> list[str]:
    given = body.get("delegates")
    if given is None:
        return []
    if not isinstance(given, list):
        raise Refusal(bad_field("delegates", "not an array"))
    emails = []
    for name in given:
        match = isinstance(name, str) and re.fullmatch(
            r"projects/-/serviceAccounts/([^/?#:\s]+@[^/?#:\s]+)", name)
        if not match:
            raise Refusal(bad_field("delegates", "not projects/-/serviceAccounts/EMAIL"))
        emails.append(match[1])
    return emails


def _need_grants(state: State, caller: str, chain: list[str]) -> None:
    """Each of caller, delegates…, target must let the one before it mint."""
    holder = caller
    for target in chain:
        if not state.holds(holder, target):
            raise Refusal(api_error(
                403, f"Permission '{GET_ACCESS_TOKEN}' denied on resource (or it may not exist).",
                reason="IAM_PERMISSION_DENIED", domain=IAM_DOMAIN,
                metadata={"permission": GET_ACCESS_TOKEN},
                note=f"{holder} holds no grant on {target}"))
        holder = target


def rfc3339(at_ns: int, fraction_digits: int = 0, offset: str | None = None) -> str:
    """A time as protobuf's Timestamp in JSON, or in another offset (RFC 3339 5.6)."""
    shift_s = 0
    if offset is not None:
        match = re.fullmatch(r"([+-])([0-9]{2}):([0-9]{2})", offset)
        if not match:
            raise ValueError(f"{offset!r} is no offset")
        shift_s = (int(match[2]) * 3600 + int(match[3]) * 60) * (-1 if match[1] == "-" else 1)
    seconds, nanos = divmod(at_ns, 10**9)
    at = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds + shift_s)
    fraction = f".{nanos:09d}"[:fraction_digits + 1] if fraction_digits else ""
    return at.strftime("%Y-%m-%dT%H:%M:%S") + fraction + (offset or "Z")


def generate_access_token(state: State, request: Request, step: Step) -> Answer:
    """projects.serviceAccounts.generateAccessToken."""
    with state.lock:
        caller, scopes = authenticate(state, request, self_signed=state.iam_credentials_audience)
        request.principal = caller
        need_scope(scopes, {CLOUD_PLATFORM, IAM_SCOPE}, SERVICE, METHOD)
        need_quota_project(state, request, caller, SERVICE)
        project, target = request.parts
        if project != "-":
            raise Refusal(bad_field("name", "the project must be the wildcard '-'"))
        body = json_object(request, {"scope", "lifetime", "delegates"})
        asked = _scopes(body)
        delegates = _delegates(body)
        account = state.account(target)
        if account is None or account.disabled:
            raise Refusal(api_error(404, note=f"no such account: {target}"))
        lifetime_ns = _lifetime_ns(body, account)
        _need_grants(state, caller, [*delegates, account.email])
        life_s = lifetime_ns / 1e9 if step.life_s is None else step.life_s
        issued = state.issue(account.email, asked, life_s, minted=True, length=step.token_bytes)
    expire_time: Any = step.expire_time
    if expire_time is None:
        expire_time = rfc3339(issued.expires_ns, step.fraction_digits, step.offset)
    answer = {"accessToken": issued.token, "expireTime": expire_time}
    for name in step.dropped:
        answer.pop(name, None)
    return ok(answer)


def test_iam_permissions(state: State, request: Request, step: Step) -> Answer:
    """projects.serviceAccounts.testIamPermissions: the subset that the caller holds."""
    with state.lock:
        caller, scopes = authenticate(state, request, self_signed=state.iam_audience)
        request.principal = caller
        need_scope(scopes, {CLOUD_PLATFORM, IAM_SCOPE}, "iam.googleapis.com",
                   "google.iam.admin.v1.IAM.TestIamPermissions")
        need_quota_project(state, request, caller, "iam.googleapis.com")
        asked = json_object(request, {"permissions"}).get("permissions")
        if not isinstance(asked, list) or not asked:
            raise Refusal(bad_field("permissions", "an array is required"))
        for name in asked:
            if not isinstance(name, str) or not re.fullmatch(r"iam\.serviceAccounts\.[A-Za-z]+",
                                                             name):
                raise Refusal(bad_field("permissions", "not a permission of this resource"))
        account = state.account(request.parts[1])
        if account is None:
            raise Refusal(api_error(404, note=f"no such account: {request.parts[1]}"))
        held = [name for name in asked if state.holds(caller, account.email, name)]
    return ok({"permissions": held} if held else {})
