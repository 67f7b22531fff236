# SPDX-License-Identifier: Apache-2.0
"""storage.googleapis.com: buckets of the project, each with one object."""

from __future__ import annotations

from .envelope import Answer, Refusal, api_error, ok
from .iam import authenticate, need_scope
from .request import Request
from .script import Step
from .state import CLOUD_PLATFORM, State

SERVICE = "storage.googleapis.com"
SCOPES = {CLOUD_PLATFORM, *(f"https://www.googleapis.com/auth/devstorage.{access}"
                            for access in ("read_only", "read_write", "full_control"))}


def list_objects(state: State, request: Request, step: Step) -> Answer:
    """objects.list: the object is called what a model says. The caller may use some project."""
    (bucket,) = request.parts
    with state.lock:
        caller, scopes = authenticate(state, request, self_signed=None)
        need_scope(scopes, SCOPES, SERVICE, "google.storage.objects.list")
        account = state.accounts.get(caller)
        if account is None or not account.projects:
            raise Refusal(api_error(403, f"{caller} does not have storage.objects.list access to "
                                         "the Google Cloud Storage bucket.",
                                    note=f"{caller} has no project"))
    return ok({"kind": "storage#objects", "items": [
        {"kind": "storage#object", "bucket": bucket, "name": state.model_text, "size": "0"}]})
