# SPDX-License-Identifier: Apache-2.0
"""From a request and a step to an answer: checks, or what the script says instead."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from . import iam, metadata, oauth2, storage, sts, vertex
from .envelope import (JSON_TYPE, OAUTH_BY_STATUS, OAUTH_JSON_TYPE, REASONS, Answer, Refusal,
                       api_error, html_page, oauth_error)
from .jwt import looks_like_jwt
from .request import Request
from .script import Step
from .state import State

HANDLERS: dict[str, Callable[[State, Request, Step], Answer]] = {
    "token": oauth2.token,
    "sts": sts.exchange,
    "subjectToken": sts.subject_token,
    "metadataToken": metadata.metadata,
    "metadataEmail": metadata.metadata,
    "metadataUniverse": metadata.metadata,
    "generateAccessToken": iam.generate_access_token,
    "testIamPermissions": iam.test_iam_permissions,
    "generateContent": vertex.generate_content,
    "streamGenerateContent": vertex.stream_generate_content,
    "countTokens": vertex.count_tokens,
    "rawPredict": vertex.raw_predict,
    "streamRawPredict": vertex.raw_predict,
    "listObjects": storage.list_objects,
}


def note_secrets(state: State, request: Request) -> None:
    """Remember the assertion of a request before anything is decided about it."""
    bearer = request.bearer
    if bearer is not None and looks_like_jwt(bearer):
        state.saw_assertion(bearer)
    if request.kind == "token":
        oauth2.note_assertion(state, request)


# whose errors are those of RFC 6749 5.2
OAUTH_KINDS = frozenset({"token", "sts"})


def _error(request: Request, step: Step) -> Answer:
    """The scripted envelope: OAuth2's at the token endpoints, AIP-193's elsewhere."""
    if request.kind in OAUTH_KINDS and step.reason is None:
        error = step.oauth_error or OAUTH_BY_STATUS.get(step.status or 400, "internal_failure")
        return oauth_error(error, step.description or step.message, status=step.status,
                           subtype=step.error_subtype)
    reason = step.reason
    status = step.status or REASONS.get(reason or "", (403,))[0]
    return api_error(status, step.message or step.description, reason=reason,
                     metadata=step.metadata)


def _literal(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def _plain(state: State, request: Request, step: Step) -> Answer:
    """The answer before the step's finishing touches."""
    if step.redirect is not None:
        answer = html_page(step.status or 302)
        answer.headers.append(("Location", step.redirect))
        return answer
    if step.html is not None and step.html is not False:
        return html_page(step.status or 502, step.html if isinstance(step.html, str) else "")
    if step.body is not None:
        kind = OAUTH_JSON_TYPE if request.kind in OAUTH_KINDS else JSON_TYPE
        return Answer(step.status or 200, _literal(step.body), kind)
    if (step.status or 200) >= 400 or step.reason or step.oauth_error or step.error_subtype:
        if step.error_subtype and not step.oauth_error:
            return oauth_error("invalid_grant", step.description, status=step.status,
                               subtype=step.error_subtype)
        return _error(request, step)
    handler = HANDLERS.get(request.kind)
    if handler is None:
        return api_error(404, note="no such method")
    try:
        answer = handler(state, request, step)
    except Refusal as refusal:
        return refusal.answer
    if step.status is not None:
        answer.status = step.status
    return answer


def answer(state: State, request: Request, step: Step) -> Answer:
    """The answer to one request under one step."""
    made = _plain(state, request, step)
    if step.content_type is not None:
        made.content_type = step.content_type
    if step.retry_after is not None:
        made.headers.append(("Retry-After", str(step.retry_after)))
    made.headers += list((step.headers or {}).items())
    if step.big_body is not None:
        padding = b" " * max(0, step.big_body - len(made.body))
        made.body += padding
        if made.chunks is not None:
            made.chunks.append(padding)
    return made
