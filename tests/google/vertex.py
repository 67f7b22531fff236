# SPDX-License-Identifier: Apache-2.0
"""aiplatform.googleapis.com: publisher models of Google and of Anthropic, with canned answers."""

from __future__ import annotations

import json
import secrets
from typing import Any

from .envelope import PREDICT, Answer, Refusal, api_error, bad_field, json_bytes, ok
from .iam import authenticate, json_object, need_quota_project, need_scope, rfc3339
from .request import Request
from .script import Step
from .state import CLOUD_PLATFORM, State

SERVICE = "aiplatform.googleapis.com"
EVENT_STREAM = "text/event-stream"


def _admit(state: State, request: Request) -> dict[str, Any]:
    """An access token of a principal with aiplatform.endpoints.predict in this project."""
    project, location, model = request.parts
    with state.lock:
        caller, scopes = authenticate(state, request, self_signed=False)
        need_scope(scopes, {CLOUD_PLATFORM}, SERVICE,
                   "google.cloud.aiplatform.v1.PredictionService.GenerateContent")
        need_quota_project(state, request, caller, SERVICE)
        account = state.accounts.get(caller)
        if account is None or project not in account.projects:
            resource = f"projects/{project}/locations/{location}/publishers/google/models/{model}"
            raise Refusal(api_error(
                403, f"Permission '{PREDICT}' denied on resource "
                     f"'//{SERVICE}/{resource}' (or it may not exist).",
                reason="IAM_PERMISSION_DENIED", domain=SERVICE,
                metadata={"permission": PREDICT, "resource": resource},
                note=f"{caller} has no access to {project}"))
    return json_object(request, None)


def _count(value: Any) -> int:
    """A plausible number of tokens."""
    return max(1, len(json.dumps(value)) // 4)


def _contents(body: dict[str, Any]) -> None:
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        raise Refusal(bad_field("contents", "at least one contents field is required"))
    for content in contents:
        if not isinstance(content, dict) or content.get("role", "user") not in ("user", "model"):
            raise Refusal(bad_field("contents", "please use a valid role: user, model."))
        if not isinstance(content.get("parts"), list) or not content["parts"]:
            raise Refusal(bad_field("contents", "must include at least one parts field"))


def _gemini(state: State, request: Request, body: dict[str, Any]) -> list[dict[str, Any]]:
    """A GenerateContentResponse in two parts, as a stream gives them."""
    half = max(1, len(state.model_text) // 2)
    prompt, answer = _count(body["contents"]), _count(state.model_text)
    common = {"modelVersion": request.parts[2], "createTime": rfc3339(state.now_ns(), 6),
              "responseId": secrets.token_urlsafe(16)}

    def candidate(text: str) -> dict[str, Any]:
        return {"content": {"role": "model", "parts": [{"text": text}]}}
    last = candidate(state.model_text[half:])
    last["finishReason"] = "STOP"
    usage = {"promptTokenCount": prompt, "candidatesTokenCount": answer,
             "totalTokenCount": prompt + answer, "trafficType": "ON_DEMAND"}
    return [
        {"candidates": [candidate(state.model_text[:half])],
         "usageMetadata": {"trafficType": "ON_DEMAND"}, **common},
        {"candidates": [last], "usageMetadata": usage, **common},
    ]


def _stream(chunks: list[bytes], content_type: str) -> Answer:
    return Answer(200, b"".join(chunks), content_type, chunks=chunks)


def generate_content(state: State, request: Request, step: Step) -> Answer:
    """models.generateContent."""
    body = _admit(state, request)
    _contents(body)
    whole = _gemini(state, request, body)[1]
    whole["candidates"][0]["content"]["parts"] = [{"text": state.model_text}]
    for name in step.dropped:
        whole.pop(name, None)
    return ok(whole)


def stream_generate_content(state: State, request: Request, step: Step) -> Answer:
    """models.streamGenerateContent: SSE with alt=sse, otherwise one JSON array in pieces."""
    body = _admit(state, request)
    _contents(body)
    parts = _gemini(state, request, body)
    if request.query.get("alt") == ["sse"]:
        return _stream([f"data: {json.dumps(part)}\r\n\r\n".encode() for part in parts],
                       EVENT_STREAM)
    pieces = [(b"[" if i == 0 else b",\r\n") + json_bytes(part).rstrip(b"\n")
              for i, part in enumerate(parts)]
    return _stream([*pieces, b"\n]\n"], "application/json; charset=UTF-8")


def count_tokens(state: State, request: Request, step: Step) -> Answer:
    """models.countTokens."""
    body = _admit(state, request)
    _contents(body)
    return ok({"totalTokens": _count(body["contents"])})


def _message(state: State, request: Request, body: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "msg_vrtx_" + secrets.token_hex(12), "type": "message", "role": "assistant",
        "model": request.parts[2], "content": [{"type": "text", "text": state.model_text}],
        "stop_reason": "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": _count(body["messages"]),
                  "output_tokens": _count(state.model_text)},
    }


def _events(message: dict[str, Any]) -> list[bytes]:
    """A message as Anthropic's stream of events, its text in two parts."""
    text = message["content"][0]["text"]
    half = len(text) // 2
    started = {**message, "content": [], "stop_reason": None,
               "usage": {**message["usage"], "output_tokens": 1}}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": started},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": part}}
          for part in (text[:half], text[half:])),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
         "usage": {"output_tokens": message["usage"]["output_tokens"]}},
        {"type": "message_stop"},
    ]
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]


def raw_predict(state: State, request: Request, step: Step) -> Answer:
    """models.rawPredict and streamRawPredict: the body is Anthropic's, plus anthropic_version."""
    body = _admit(state, request)
    if not isinstance(body.get("anthropic_version"), str):
        raise Refusal(bad_field("anthropic_version", "field required"))
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        raise Refusal(bad_field("messages", "at least one message is required"))
    if request.parts[2].startswith("count-tokens"):
        return ok({"input_tokens": _count(body["messages"])})
    message = _message(state, request, body)
    if body.get("stream") is True:
        return _stream(_events(message), EVENT_STREAM)
    return ok(message)
