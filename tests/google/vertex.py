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
from .state import CLOUD_PLATFORM, State, ToolCall

SERVICE = "aiplatform.googleapis.com"
EVENT_STREAM = "text/event-stream"


def _admit(state: State, request: Request) -> dict[str, Any]:
    """An access token of a principal with aiplatform.endpoints.predict in this project."""
    project, location, model = request.parts
    with state.lock:
        caller, scopes = authenticate(state, request, self_signed=None)
        need_scope(scopes, {CLOUD_PLATFORM}, SERVICE,
                   "google.cloud.aiplatform.v1.PredictionService.GenerateContent")
        need_quota_project(state, request, caller, SERVICE)
        account = state.accounts.get(caller)
        if account is None or project not in account.projects:
            publisher = "anthropic" if request.kind.endswith("awPredict") else "google"
            resource = (f"projects/{project}/locations/{location}/publishers/{publisher}"
                        f"/models/{model}")
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


def _halves(text: str) -> list[str]:
    """A text as a stream gives it: in two."""
    half = max(1, len(text) // 2)
    return [text[:half], text[half:]]


def _tool_call(state: State, declared: list[Any]) -> ToolCall | None:
    """What the model calls instead of an answer: only what the request offers it."""
    names = [tool.get("name") for tool in declared if isinstance(tool, dict)]
    with state.lock:
        if state.tool_calls and state.tool_calls[0].name in names:
            return state.tool_calls.popleft()
        return None


def _contents(body: dict[str, Any]) -> None:
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        raise Refusal(bad_field("contents", "at least one contents field is required"))
    for content in contents:
        if not isinstance(content, dict) or content.get("role", "user") not in ("user", "model"):
            raise Refusal(bad_field("contents", "please use a valid role: user, model."))
        if not isinstance(content.get("parts"), list) or not content["parts"]:
            raise Refusal(bad_field("contents", "must include at least one parts field"))


def _gemini(state: State, request: Request, body: dict[str, Any], *,
            streamed: bool) -> list[dict[str, Any]]:
    """A GenerateContentResponse; a text that is streamed comes in two."""
    declared = [each for tool in body.get("tools") or [] for each in
                tool.get("functionDeclarations") or []]
    call = _tool_call(state, declared)
    if call is None:
        texts = _halves(state.model_text) if streamed else [state.model_text]
        parts: list[dict[str, Any]] = [{"text": text} for text in texts]
    else:
        parts = [{"functionCall": {"name": call.name, "args": call.arguments}}]
    prompt, answer = _count(body["contents"]), _count(parts)
    common = {"modelVersion": request.parts[2], "createTime": rfc3339(state.now_ns(), 6),
              "responseId": secrets.token_urlsafe(16)}
    made = [{"candidates": [{"content": {"role": "model", "parts": [part]}}],
             "usageMetadata": {"trafficType": "ON_DEMAND"}, **common} for part in parts]
    made[-1]["candidates"][0]["finishReason"] = "STOP"
    made[-1]["usageMetadata"] = {"promptTokenCount": prompt, "candidatesTokenCount": answer,
                                 "totalTokenCount": prompt + answer, "trafficType": "ON_DEMAND"}
    return made


def _stream(chunks: list[bytes], content_type: str) -> Answer:
    return Answer(200, b"".join(chunks), content_type, chunks=chunks)


def generate_content(state: State, request: Request, step: Step) -> Answer:
    """models.generateContent."""
    body = _admit(state, request)
    _contents(body)
    [whole] = _gemini(state, request, body, streamed=False)
    for name in step.dropped:
        whole.pop(name, None)
    return ok(whole)


def stream_generate_content(state: State, request: Request, step: Step) -> Answer:
    """models.streamGenerateContent: SSE with alt=sse, otherwise one JSON array in pieces."""
    body = _admit(state, request)
    _contents(body)
    parts = _gemini(state, request, body, streamed=True)
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
    call = _tool_call(state, body.get("tools") or [])
    if call is None:
        content: dict[str, Any] = {"type": "text", "text": state.model_text}
    else:
        content = {"type": "tool_use", "id": "toolu_vrtx_" + secrets.token_hex(12),
                   "name": call.name, "input": call.arguments}
    return {
        "id": "msg_vrtx_" + secrets.token_hex(12), "type": "message", "role": "assistant",
        "model": request.parts[2], "content": [content],
        "stop_reason": "end_turn" if call is None else "tool_use", "stop_sequence": None,
        "usage": {"input_tokens": _count(body["messages"]), "output_tokens": _count(content)},
    }


def _block_events(index: int, block: dict[str, Any]) -> list[dict[str, Any]]:
    """A block of a message: it starts empty, a text comes in two, an input as JSON."""
    if block["type"] == "text":
        empty = {**block, "text": ""}
        deltas = [{"type": "text_delta", "text": text} for text in _halves(block["text"])]
    else:
        empty = {**block, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": text}
                  for text in ["", *_halves(json.dumps(block["input"]))]]
    return [
        {"type": "content_block_start", "index": index, "content_block": empty},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _events(message: dict[str, Any]) -> list[bytes]:
    """A message as Anthropic's stream of events."""
    started = {**message, "content": [], "stop_reason": None,
               "usage": {**message["usage"], "output_tokens": 1}}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": started},
        {"type": "ping"},
        *(event for index, block in enumerate(message["content"])
          for event in _block_events(index, block)),
        {"type": "message_delta",
         "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
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
