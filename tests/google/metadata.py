# SPDX-License-Identifier: Apache-2.0
"""The metadata server of the bastion's own machine, as far as a source needs it."""

from __future__ import annotations

from .envelope import Answer, html_page, ok
from .request import Request
from .script import Step
from .state import State

FLAVOR = "Metadata-Flavor"
RENEWED_BEFORE_S = 300  # until then it gives the same token again


def _said(answer: Answer, step: Step) -> Answer:
    """With what tells a metadata server from anything else, unless it is dropped."""
    if FLAVOR not in step.dropped:
        answer.headers.append((FLAVOR, "Google"))
    answer.headers.append(("Server", "Metadata Server for VM"))
    return answer


def _text(value: str | None, step: Step) -> Answer:
    if value is None:
        return _said(html_page(404), step)
    return _said(Answer(200, value.encode(), "application/text"), step)


def _token(state: State, request: Request, step: Step) -> Answer:
    vm = state.vm
    if vm.account is None:
        return _said(html_page(404), step)
    now_ns = state.now_ns()
    if vm.token is None or vm.token.expires_ns - now_ns <= RENEWED_BEFORE_S * 10**9:
        life_s = state.source_life_s if step.life_s is None else step.life_s
        vm.token = state.issue(vm.account, vm.scopes, life_s, minted=False,
                               length=step.token_bytes)
    request.principal = vm.account
    left_s = (vm.token.expires_ns - now_ns) // 10**9
    body = {"access_token": vm.token.token,
            "expires_in": left_s if step.expires_in is None else step.expires_in,
            "token_type": "Bearer"}
    for name in step.dropped:
        body.pop(name, None)
    return _said(ok(body, content_type="application/json"), step)


def metadata(state: State, request: Request, step: Step) -> Answer:
    """GET /computeMetadata/v1/…: universe, email and token of the default account."""
    if request.headers.get("x-forwarded-for") is not None:
        return _said(html_page(403), step)
    if request.headers.get("metadata-flavor") != "Google":
        return _said(html_page(403, "Missing Metadata-Flavor:Google header."), step)
    with state.lock:
        if request.kind == "metadataUniverse":
            return _text(state.vm.universe, step)
        if request.kind == "metadataEmail":
            return _text(state.vm.account, step)
        return _token(state, request, step)
