# SPDX-License-Identifier: Apache-2.0
"""Before a session opens: would a token come? Contract, section 7, preflight."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.google.script import Step
from tests.google.standin import ACCOUNT, SOURCE_ACCOUNT, USER, Standin

from .broker import Broker
from .conftest import Starter
from .http1 import Client
from .sessions import MINT, SESSIONS, ask, error, leased, listed, opened, post, whole

GRANT = "testIamPermissions"
LOGIN = "token"
FIRST_DELEGATE = "first@my-project.iam.gserviceaccount.com"


def assert_refused(broker: Broker, text: str, kind: str, **wish: Any) -> str:
    """mint_failed in words that may leave the broker; gives the message."""
    status, code, message = error(post(broker, **wish))
    assert (status, code) == (502, "mint_failed"), message
    assert message.startswith(f"{text} ({kind}"), message
    assert message.endswith("); the broker's log has the rest")
    assert listed(broker) == [] and broker.audit_of("session.open") == []
    return message


def test_none_asks_nobody(broker: Broker, google: Standin) -> None:
    opened(broker, preflight="none")
    opened(broker)
    assert google.calls == []


def test_grant_asks_for_the_one_permission_and_mints_nothing(broker: Broker,
                                                            google: Standin) -> None:
    session = opened(broker, preflight="grant")
    call, = google.calls_of(GRANT)
    assert call.path == f"/v1/projects/-/serviceAccounts/{ACCOUNT}:testIamPermissions"
    assert call.principal == USER and google.count(MINT) == 0
    assert ask(session).token


def test_a_missing_grant_opens_nothing(broker: Broker, google: Standin) -> None:
    google.revoke(USER, ACCOUNT)
    assert_refused(broker, "the broker may not use this account", "permanent", preflight="grant")
    assert google.count(MINT) == 0
    broker.wait_for_log("^warning: preflight: profile=vertex .*grant_missing hint=.*"
                        f"roles/iam.serviceAccountTokenCreator on {ACCOUNT} itself, with: gcloud")
    google.grant(USER, ACCOUNT)
    opened(broker, preflight="grant")


def test_an_account_that_is_not_there_opens_nothing(broker: Broker, google: Standin) -> None:
    google.remove_account(ACCOUNT)
    assert_refused(broker, "account not available", "permanent", preflight="grant")


@pytest.mark.parametrize("step", [
    Step(status=500), Step(status=403, reason="IAM_PERMISSION_DENIED"), Step(status=429),
    Step(status=401), Step(html=True, status=200), Step(body="[]"), Step(truncate_at=3),
    Step(status=400)], ids=lambda step: str(step.status or step.body or "truncated"))
def test_only_a_definite_no_refuses(broker: Broker, google: Standin, step: Step) -> None:
    google.always(GRANT, step)
    session = opened(broker, preflight="grant")
    broker.wait_for_log("^warning: preflight: .* could not be asked")
    assert ask(session).token


@pytest.mark.parametrize("body", [{}, {"permissions": []}, {"permissions": None},
                                  {"permissions": "iam.serviceAccounts.getAccessToken"},
                                  {"permissions": ["iam.serviceAccounts.getAccessTokens", 1]}],
                         ids=repr)
def test_a_no_is_whatever_does_not_name_it(broker: Broker, google: Standin, body: Any) -> None:
    google.always(GRANT, Step(body=body))
    assert_refused(broker, "the broker may not use this account", "permanent", preflight="grant")


def test_a_login_that_has_expired_opens_nothing(broker: Broker, google: Standin) -> None:
    google.revoke_login()
    for preflight in ("grant", "mint"):
        assert_refused(broker, "the host's login has expired", "permanent", preflight=preflight)


def test_a_token_endpoint_that_is_down_is_no_no(broker: Broker, google: Standin) -> None:
    google.always(LOGIN, Step(status=500))
    opened(broker, preflight="grant")
    assert google.count(GRANT) == 0


def test_grant_asks_for_the_first_delegate(start: Starter, google: Standin) -> None:
    broker = start(google, profiles={"vertex": {"delegates": FIRST_DELEGATE}})
    google.add_account(FIRST_DELEGATE)
    assert_refused(broker, "the broker may not use this account", "permanent", preflight="grant")
    google.grant(USER, FIRST_DELEGATE)
    opened(broker, preflight="grant")
    assert all(FIRST_DELEGATE in call.path for call in google.calls_of(GRANT))


def test_grant_with_a_service_accounts_key(start: Starter, google: Standin) -> None:
    broker = start(google, source={"type": "file", "file": google.write_service_account()})
    session = opened(broker, preflight="grant")
    assert google.calls_of(GRANT)[0].principal == SOURCE_ACCOUNT
    assert "preflight" not in broker.log
    assert ask(session).token and google.calls_of(MINT)[0].principal == SOURCE_ACCOUNT


def test_a_missing_grant_of_a_service_accounts_key_opens_nothing(start: Starter,
                                                                 google: Standin) -> None:
    """Its assertion was for another service; what that refused was taken for no answer."""
    google.revoke(SOURCE_ACCOUNT, ACCOUNT)
    broker = start(google, source={"type": "file", "file": google.write_service_account()})
    assert_refused(broker, "the broker may not use this account", "permanent", preflight="grant")
    broker.wait_for_log("^warning: preflight: profile=vertex .*grant_missing")
    assert google.count(MINT) == 0


def test_grant_with_a_new_key_while_the_clock_is_off(start: Starter, google: Standin) -> None:
    """What a mint had found of the clock was not known to the new key's preflight."""
    file = google.write_service_account()
    google.clock_offset_s = -600.0
    broker = start(google, source={"type": "file", "file": file})
    broker.until_token()
    google.write_service_account(file, fresh=True)
    broker.wait_for_audit("source.change")
    opened(broker, preflight="grant")
    assert google.calls_of(GRANT)[0].principal == SOURCE_ACCOUNT
    assert "preflight" not in broker.log


def test_mint_brings_the_sessions_first_token(broker: Broker, google: Standin) -> None:
    session = opened(broker, preflight="mint")
    assert google.count(MINT) == 1
    assert ask(session).token and google.count(MINT) == 1


def test_a_failed_mint_opens_nothing_and_names_its_reference(broker: Broker,
                                                            google: Standin) -> None:
    google.revoke(USER, ACCOUNT)
    message = assert_refused(broker, "the broker may not use this account", "permanent",
                             preflight="mint")
    ref = re.search(r"ref ([0-9a-f]{8})", message)
    assert ref and broker.audit_of("token.mint", ref=ref[1], result="failed")
    google.grant(USER, ACCOUNT)
    google.always(MINT, Step(status=500))
    assert_refused(broker, "credential temporarily unavailable", "transient", preflight="mint")


def test_mint_waits_for_the_mint(broker: Broker, google: Standin) -> None:
    """Longer than a sandbox's request would."""
    google.script(MINT, Step(delay_s=3))
    assert ask(opened(broker, preflight="mint")).token


def test_mint_of_a_shared_token_uses_what_is_there(start: Starter, google: Standin) -> None:
    broker = start(google, profiles={"vertex": {"token_sharing": "profile"}})
    assert broker.token().token
    opened(broker, preflight="mint")
    assert google.count(MINT) == 1


def test_offline_passes(offline: Broker) -> None:
    for preflight in ("grant", "mint"):
        with leased(offline, preflight=preflight) as lease:
            assert ask(lease.session).token


def test_a_wish_that_cannot_be_is_refused_before_google_is_asked(broker: Broker,
                                                                 google: Standin) -> None:
    assert post(broker, profile="nobody", preflight="mint").status == 404
    assert post(broker, ttl_s=10**6, preflight="mint").status == 400
    assert google.calls == []


# what happens meanwhile


@contextlib.contextmanager
def preflighting(broker: Broker, google: Standin, preflight: str, kind: str,
                 count: int = 1) -> Iterator[list[Client]]:
    """So many POSTs whose call to Google is held."""
    google.hold(kind)
    clients = []
    for _ in range(count):
        client = broker.control_client()
        client.send(whole(SESSIONS, "POST", {"profile": "vertex", "listen": "127.0.0.1",
                                             "preflight": preflight}))
        clients.append(client)
    google.wait_for(kind)
    try:
        yield clients
    finally:
        for client in clients:
            client.close()


HELD = [("grant", LOGIN), ("grant", GRANT), ("mint", LOGIN), ("mint", MINT)]


@pytest.mark.parametrize(("preflight", "kind"), HELD)
def test_a_new_login_during_a_preflight(broker: Broker, google: Standin, preflight: str,
                                        kind: str) -> None:
    """The old source was freed while the preflight waited for its token."""
    with preflighting(broker, google, preflight, kind, 3) as clients:
        google.write_adc(broker.sections["source"]["file"], **google.new_login())
        assert broker.reload()["result"] == "ok"
        google.release(kind)
        assert {client.read().status for client in clients} == {201}
    assert ask(opened(broker, preflight="mint")).token


@pytest.mark.parametrize("sources", [1, 3])
def test_a_new_login_during_a_preflight_past_an_impersonated_account(
        start: Starter, google: Standin, sources: int) -> None:
    """The preflight asked what is within a file; the file's own credential was freed with it."""
    file = google.write_impersonated(account=ACCOUNT)
    broker = start(google, source={"type": "file", "file": file})
    with preflighting(broker, google, "grant", LOGIN) as (client,):
        for _ in range(sources):
            google.write_impersonated(file, account=ACCOUNT, source=google.new_login())
            assert broker.reload()["result"] == "ok"
        google.release(LOGIN)
        assert client.read().status == 201
    assert ask(opened(broker, preflight="mint")).token


def test_a_stop_with_an_old_source_that_still_asks(start: Starter, google: Standin) -> None:
    file = google.write_impersonated(account=FIRST_DELEGATE)
    broker = start(google, source={"type": "file", "file": file})
    with preflighting(broker, google, "grant", LOGIN):
        google.write_impersonated(file, account=FIRST_DELEGATE, source=google.new_login())
        assert broker.reload()["result"] == "ok"
    assert broker.stop() == 0


@pytest.mark.parametrize(("preflight", "kind"), HELD)
def test_a_profile_that_goes_during_a_preflight(start: Starter, google: Standin, preflight: str,
                                                kind: str) -> None:
    broker = start(google)
    with preflighting(broker, google, preflight, kind) as clients:
        broker.configure(profiles={"other": {}})
        assert broker.reload()["result"] == "ok"
        google.release(kind)
        assert error(clients[0].read())[:2] == (404, "profile_unknown")


def test_a_profile_that_closes_its_doors_during_a_preflight(start: Starter,
                                                            google: Standin) -> None:
    """What allow_groups says when the session opens counts, for whoever is not root."""
    from .callers import ALICE, GROUP, client_of
    import grp
    import os
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    gid = grp.getgrnam(GROUP).gr_gid
    broker = start(google, broker={"control_group": GROUP})
    google.hold(GRANT)
    with client_of(broker, ALICE, ALICE, [gid]) as client:
        client.send(whole(SESSIONS, "POST", {"profile": "vertex", "listen": "127.0.0.1",
                                             "preflight": "grant"}))
        google.wait_for(GRANT)
        broker.configure(broker={"control_group": GROUP}, profiles={"vertex": {
            "allow_groups": "daemon"}})
        assert broker.reload()["result"] == "ok"
        google.release(GRANT)
        assert error(client.read())[:2] == (403, "forbidden")


@pytest.mark.parametrize(("preflight", "kind"), HELD)
def test_sigterm_during_a_preflight(start: Starter, google: Standin, preflight: str,
                                    kind: str) -> None:
    broker = start(google)
    with preflighting(broker, google, preflight, kind, 5) as clients:
        broker.process.terminate()
        for client in clients:
            assert error(client.read())[:2] == (503, "shutting_down")
    assert broker.wait() == 0
    google.release(kind)


@pytest.mark.parametrize(("preflight", "kind"), HELD)
def test_a_hundred_that_leave_during_a_preflight(broker: Broker, google: Standin, preflight: str,
                                                 kind: str) -> None:
    with preflighting(broker, google, preflight, kind, 100) as clients:
        for client in clients[:99]:
            client.reset()
        assert broker.control("/healthz").status == 200
        google.release(kind)
        assert clients[99].read().status == 201
    assert len(listed(broker)) == 1


def test_the_limit_counts_when_the_session_opens(start: Starter, google: Standin) -> None:
    broker = start(google, broker={"max_sessions": 2, "max_sessions_per_user": 2})
    with preflighting(broker, google, "grant", GRANT, 5) as clients:
        google.release(GRANT)
        assert sorted(client.read().status for client in clients) == [201, 201, 429, 429, 429]
