# SPDX-License-Identifier: Apache-2.0
"""Answers and the two error envelopes: AIP-193 for APIs, RFC 6749 5.2 for the token endpoint."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

JSON_TYPE = "application/json; charset=UTF-8"
OAUTH_JSON_TYPE = "application/json; charset=utf-8"
IAM_DOMAIN = "iam.googleapis.com"
GET_ACCESS_TOKEN = "iam.serviceAccounts.getAccessToken"
PREDICT = "aiplatform.endpoints.predict"

# google.rpc.Code by HTTP status (AIP-193, google/rpc/code.proto)
RPC_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    412: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}

MESSAGES = {
    400: "Request contains an invalid argument.",
    401: "Request had invalid authentication credentials. Expected OAuth 2 access token, login "
         "cookie or other valid authentication credential.",
    403: "The caller does not have permission",
    404: "Requested entity was not found.",
    429: "Quota exceeded for quota metric 'Generate credentials'.",
    500: "Internal error encountered.",
    503: "The service is currently unavailable.",
    504: "Deadline expired before operation could complete.",
}

# reason: (HTTP status, domain, message, default metadata), from reports in the facts page
REASONS: dict[str, tuple[int, str, str, dict[str, str]]] = {
    "IAM_PERMISSION_DENIED": (
        403, IAM_DOMAIN,
        f"Permission '{GET_ACCESS_TOKEN}' denied on resource (or it may not exist).",
        {"permission": GET_ACCESS_TOKEN}),
    "SERVICE_DISABLED": (
        403, "googleapis.com",
        "IAM Service Account Credentials API has not been used in project 123456789012 before "
        "or it is disabled.",
        {"service": "iamcredentials.googleapis.com", "consumer": "projects/123456789012"}),
    "ACCESS_TOKEN_SCOPE_INSUFFICIENT": (
        403, "googleapis.com", "Request had insufficient authentication scopes.",
        {"service": "iamcredentials.googleapis.com",
         "method": "google.iam.credentials.v1.IAMCredentials.GenerateAccessToken"}),
    "USER_PROJECT_DENIED": (
        403, "googleapis.com",
        "Caller does not have required permission to use project. Grant the caller the "
        "roles/serviceusage.serviceUsageConsumer role.",
        {"service": "iamcredentials.googleapis.com"}),
    "SECURITY_POLICY_VIOLATED": (
        403, "googleapis.com", "Request is prohibited by organization's policy.",
        {"uid": "vpcServiceControlsUniqueIdentifier-0001",
         "service": "iamcredentials.googleapis.com"}),
    "ACCESS_TOKEN_EXPIRED": (401, "googleapis.com", MESSAGES[401], {}),
    "ACCESS_TOKEN_TYPE_UNSUPPORTED": (401, "googleapis.com", MESSAGES[401], {}),
    "ACCOUNT_STATE_INVALID": (401, "googleapis.com", MESSAGES[401], {}),
    "CREDENTIALS_MISSING": (
        401, "googleapis.com",
        "Request is missing required authentication credential. Expected OAuth 2 access token, "
        "login cookie or other valid authentication credential.", {}),
    "RATE_LIMIT_EXCEEDED": (429, "googleapis.com", MESSAGES[429], {}),
}

# what the token endpoint says with each error (RFC 6749 5.2; texts as reported in public threads)
OAUTH_DESCRIPTIONS = {
    "invalid_grant": "Token has been expired or revoked.",
    "invalid_client": "The OAuth client was not found.",
    "unauthorized_client": "Unauthorized",
    "deleted_client": "The OAuth client was deleted.",
    "invalid_scope": "Invalid OAuth scope or ID token audience provided.",
    "access_denied": "Account restricted",
    "internal_failure": "Internal failure",
    "temporarily_unavailable": "Please try again later.",
    "rate_limit_exceeded": "Rate limit exceeded.",
}
OAUTH_BY_STATUS = {
    400: "invalid_grant",
    401: "invalid_client",
    403: "access_denied",
    429: "rate_limit_exceeded",
    500: "internal_failure",
    503: "temporarily_unavailable",
}


@dataclass
class Answer:
    """One HTTP answer before it meets the wire; `note` is for the record, never sent."""

    status: int
    body: bytes
    content_type: str = JSON_TYPE
    headers: list[tuple[str, str]] = field(default_factory=list)
    chunks: list[bytes] | None = None
    note: str = ""


class Refusal(Exception):
    """Raised by a check; carries the answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.note)
        self.answer = answer


def json_bytes(value: Any) -> bytes:
    """JSON as Google's front end prints it: two spaces of indent, a final newline."""
    return json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def ok(value: Any, **more: Any) -> Answer:
    """A 200 with a JSON body."""
    return Answer(200, json_bytes(value), **more)


def api_error(status: int, message: str | None = None, *, reason: str | None = None,
              domain: str | None = None, metadata: dict[str, str] | None = None,
              details: list[dict[str, Any]] | None = None, note: str = "") -> Answer:
    """The envelope of AIP-193: code, message, status, details with an ErrorInfo."""
    known = REASONS.get(reason or "", (status, "googleapis.com", "", {}))
    error: dict[str, Any] = {
        "code": status,
        "message": message or known[2] or MESSAGES.get(status, "Error."),
        "status": RPC_STATUS.get(status, "UNKNOWN"),
    }
    listed: list[dict[str, Any]] = []
    if reason is not None:
        info: dict[str, Any] = {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": reason,
            "domain": domain or known[1],
        }
        about = metadata if metadata is not None else known[3]
        if about:
            info["metadata"] = about
        listed.append(info)
    if reason == "SERVICE_DISABLED":
        listed.append({
            "@type": "type.googleapis.com/google.rpc.Help",
            "links": [{"description": "Google developers console API activation",
                       "url": "https://console.developers.google.com/apis/api/"
                              "iamcredentials.googleapis.com/overview?project=123456789012"}],
        })
    listed += details or []
    if listed:
        error["details"] = listed
    headers = []
    if status == 401:
        challenge = 'Bearer realm="https://accounts.google.com/"'
        if reason != "CREDENTIALS_MISSING":
            challenge += ', error="invalid_token"'
        headers.append(("WWW-Authenticate", challenge))
    return Answer(status, json_bytes({"error": error}), headers=headers, note=note)


def bad_field(name: str, description: str) -> Answer:
    """400 INVALID_ARGUMENT with a BadRequest detail that names the field (AIP-193)."""
    return api_error(400, f"Invalid value at '{name}': {description}",
                     note=f"{name}: {description}", details=[{
                         "@type": "type.googleapis.com/google.rpc.BadRequest",
                         "fieldViolations": [{"field": name, "description": description}],
                     }])


def oauth_error(error: str, description: str | None = None, *, status: int | None = None,
                subtype: str | None = None, note: str = "") -> Answer:
    """The envelope of RFC 6749 5.2, with Google's error_subtype."""
    body: dict[str, Any] = {
        "error": error,
        "error_description": description or OAUTH_DESCRIPTIONS.get(error, "Bad Request"),
    }
    if subtype is not None:
        body["error_subtype"] = subtype
        if description is None:
            body["error_description"] = f"reauth related error ({subtype})"
        body["error_uri"] = "https://support.google.com/a/answer/9368756"
    if status is None:
        client = error in ("invalid_client", "unauthorized_client", "deleted_client")
        status = 401 if client else 400
    return Answer(status, json_bytes(body), OAUTH_JSON_TYPE, note=note or error)


def html_page(status: int, text: str = "") -> Answer:
    """What a front end or a proxy says when it does not speak JSON."""
    page = text or (f"<!DOCTYPE html>\n<html lang=en>\n<title>Error {status}</title>\n"
                    f"<p><b>{status}.</b> <ins>That’s an error.</ins>\n")
    return Answer(status, page.encode(), "text/html; charset=UTF-8", note="html")
