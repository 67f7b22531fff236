# SPDX-License-Identifier: Apache-2.0
"""The stand-in's own API under /_/ on the plain port, for tests in other languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .envelope import Answer, api_error, ok
from .request import Request
from .server import ADMIN_PREFIX

if TYPE_CHECKING:
    from .standin import Standin


def _kind_of(request: Request) -> str | None:
    return request.query["kind"][0] if "kind" in request.query else None


def _get(standin: Standin, request: Request, name: str) -> Any:
    if name == "calls":
        return {"calls": [call.as_dict() for call in standin.calls_of(_kind_of(request))]}
    if name == "secrets":
        return {"secrets": sorted(standin.secrets())}
    if name == "status":
        return standin.describe()
    raise KeyError(name)


def _post(standin: Standin, name: str, body: dict[str, Any]) -> None:
    if name == "script":
        if body.get("always"):
            for step in body["steps"][-1:]:
                standin.always(body["kind"], step)
        else:
            standin.script(body["kind"], *body["steps"])
    elif name == "clear":
        standin.clear(body.get("kind"))
        if body.get("calls"):
            standin.forget_calls()
    elif name == "clock":
        standin.clock_offset_s = float(body["offset_s"])
    elif name == "hold":
        standin.hold(body["kind"])
    elif name == "release":
        standin.release(body["kind"], body.get("n"))
    elif name == "account":
        standin.add_account(body["email"], projects=tuple(body.get("projects", ())),
                            long_lifetime=bool(body.get("long_lifetime", False)))
    elif name == "grant":
        standin.grant(body["caller"], body["target"])
    elif name == "revoke":
        standin.revoke(body["caller"], body["target"])
    else:
        raise KeyError(name)


def handle(standin: Standin, request: Request) -> Answer:
    """Answer one call; anything wrong is a 400 or 404 that says what."""
    name = request.path[len(ADMIN_PREFIX):]
    try:
        if request.method == "GET":
            return ok(_get(standin, request, name))
        if request.method == "POST":
            body = request.json() if request.body else {}
            if not isinstance(body, dict):
                raise ValueError("the body is no object")
            _post(standin, name, body)
            return ok(standin.describe())
    except KeyError as err:
        return api_error(404 if err.args == (name,) else 400, f"{err} is not there")
    except (ValueError, TypeError) as err:
        return api_error(400, str(err))
    return api_error(404)
