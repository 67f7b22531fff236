# SPDX-License-Identifier: Apache-2.0
"""What all clients together asked, against what is known of them. Runs after all others."""

from __future__ import annotations

import pytest

from tests.google.standin import Standin

from .known_requests import ACCOUNTS, FOREIGN, REFUSED, SERVED, V1
from .wire import Request, Wire

# Of the endpoint's own doing: a mint that failed or a broker that ended.
PASSING = {0, 403, 429, 503}


def template(path: str, accounts: set[str]) -> str:
    """The path with `{account}` for an account."""
    head, _, rest = path.partition(f"{ACCOUNTS}/")
    account, slash, key = rest.partition("/")
    known = path.startswith(f"{ACCOUNTS}/") and account in accounts
    return f"{head}{ACCOUNTS}/{{account}}{slash}{key}" if known else path


def news(asked: Request, account: str) -> str:
    """What is not known about a request."""
    said = f"{asked.client} asked {asked.method} {asked.target}, answered {asked.status}"
    path = template(asked.path, {"default", account, FOREIGN})
    if asked.method != "GET":
        return said
    if path in REFUSED or f"/{FOREIGN}/" in asked.path:
        queries = REFUSED[path][1] if path in REFUSED else SERVED.get(path, set())
        good = asked.status in (0, 404)
    else:
        queries = SERVED.get(path, set())
        good = path in SERVED and asked.status in {200} | PASSING
    return "" if good and set(asked.query) <= queries else said


ACCOUNT = "agent@my-project.iam.gserviceaccount.com"


@pytest.mark.parametrize("target", [
    "/", f"{V1}/instance", f"{ACCOUNTS}/default/token?scopes=a%2Cb",
    f"{ACCOUNTS}/{ACCOUNT}/?recursive=true",
])
def test_what_is_served_is_no_news(target: str) -> None:
    assert not news(Request("x", "GET", target, 200), ACCOUNT)
    assert news(Request("x", "GET", target, 404), ACCOUNT)
    assert news(Request("x", "POST", target, 200), ACCOUNT)


@pytest.mark.parametrize("target", [
    f"{V1}/instance/id", f"{ACCOUNTS}/default/token?binding=on", f"{ACCOUNTS}/third@x.example/token",
])
@pytest.mark.parametrize("status", [200, 404])
def test_what_is_not_known_is_news(target: str, status: int) -> None:
    assert news(Request("x", "GET", target, status), ACCOUNT)


def test_what_is_refused_must_be_refused() -> None:
    target = f"{ACCOUNTS}/default/identity?audience=https://service.example"
    assert not news(Request("x", "GET", target, 404), ACCOUNT)
    assert news(Request("x", "GET", target, 200), ACCOUNT)


def test_no_client_asked_for_what_is_not_known(wire: Wire, google: Standin) -> None:
    assert wire.requests, "no client asked anything: run all of tests/clients"
    told = {news(asked, google.account) for asked in wire.requests} - {""}
    assert not told, "news of the clients; see known_requests.py:\n" + "\n".join(sorted(told))
