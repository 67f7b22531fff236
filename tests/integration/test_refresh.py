# SPDX-License-Identifier: Apache-2.0
"""The life of a token: contract, section 5. The cache's own tests have a clock of their own; these
have Google's, which gives tokens as short-lived as a test wants them."""

from __future__ import annotations

import time

import pytest

from tests.google.script import Step
from tests.google.standin import Standin

from .broker import Broker
from .deadline import FACTOR, allowed, eventually
from .http1 import TOKEN, Reply, request

pytestmark = pytest.mark.real_time

MINT = "generateAccessToken"

# With the default refresh_margin of 300 s: above 600 s fresh, down to 300 s due, below that stale;
# below 30 s a token is not handed out while there is anything to wait for.
FRESH_S, DUE_S, STALE_S, LAST_S = 3600, 500, 200, 20


def timed(broker: Broker) -> tuple[Reply, float]:
    begun = time.monotonic()
    reply = broker.token()
    return reply, time.monotonic() - begun


def wait_for_second_mint(broker: Broker, google: Standin) -> None:
    """A token that is due from its first moment is not renewed within its first second."""
    eventually("a second mint", lambda: broker.token() and google.count(MINT) == 2)


def test_a_fresh_token_is_not_renewed(broker: Broker, google: Standin) -> None:
    google.script(MINT, Step(life_s=700))
    tokens = {broker.token().token for _ in range(20)}
    assert len(tokens) == 1 and google.count(MINT) == 1


def test_a_token_that_is_due_is_served_at_once_and_renewed_behind(broker: Broker,
                                                                  google: Standin) -> None:
    """google-auth-library-python#581: clients must not poll the same token for minutes."""
    google.script(MINT, Step(life_s=DUE_S))
    first = broker.token()
    google.hold(MINT)
    wait_for_second_mint(broker, google)
    for _ in range(5):
        reply, took_s = timed(broker)
        assert reply.token == first.token and took_s < 0.2 * FACTOR
    google.release(MINT)
    new = broker.until(lambda reply: reply.token != first.token)
    assert new.expires_in > 3500 and google.count(MINT) == 2


def test_a_stale_token_is_waited_for_300_ms(broker: Broker, google: Standin) -> None:
    google.script(MINT, Step(life_s=STALE_S))
    first = broker.token()
    google.hold(MINT)
    wait_for_second_mint(broker, google)
    reply, took_s = timed(broker)
    assert reply.token == first.token and 0.25 < took_s < 0.3 + 0.4 * FACTOR
    google.release(MINT)
    broker.until(lambda reply: reply.token != first.token)


def test_a_request_at_the_margin_gets_the_new_token(broker: Broker, google: Standin) -> None:
    google.script(MINT, Step(life_s=STALE_S))
    first = broker.token()
    begun = time.monotonic()
    seen: list[str] = []
    while not seen or seen[-1] == first.token:
        assert time.monotonic() - begun < allowed(5)
        seen.append(broker.token().token)
    assert google.count(MINT) == 2  # the one that started the mint was answered with its token


def test_a_stale_token_is_served_where_the_mint_fails(broker: Broker, google: Standin) -> None:
    """djc/gcp_auth#1: a token that is valid still is better than none."""
    google.script(MINT, Step(life_s=STALE_S))
    first = broker.token()
    google.always(MINT, Step(status=503))
    wait_for_second_mint(broker, google)
    for _ in range(5):
        assert broker.token().token == first.token
    google.clear(MINT)
    # nobody has to ask for the next try: a timer does it
    google.wait_for(MINT, 3)
    broker.until(lambda reply: reply.token != first.token)


def test_a_stale_token_is_served_where_the_account_is_refused(broker: Broker,
                                                              google: Standin) -> None:
    google.script(MINT, Step(life_s=STALE_S))
    first = broker.token()
    google.always(MINT, Step(reason="IAM_PERMISSION_DENIED"))
    wait_for_second_mint(broker, google)
    assert broker.token().token == first.token
    assert google.count(MINT) == 2


def test_a_token_in_its_last_seconds_is_waited_for_2500_ms(broker: Broker,
                                                           google: Standin) -> None:
    """fs2-pubsub#233: no token with hardly any life, where a newer one can be had."""
    google.script(MINT, Step(life_s=LAST_S))
    first = broker.token()
    assert 0 < first.expires_in <= LAST_S  # a new one is given however short it lives
    google.hold(MINT)

    begun = time.monotonic()
    reply = broker.until(lambda reply: reply.status == 503)
    assert 2.4 < time.monotonic() - begun < 1 + 2.5 + 0.7 * FACTOR
    assert reply.header("Retry-After") == "1"
    google.release(MINT)
    broker.until_token()


def test_who_waits_for_the_first_token_gets_it_when_it_comes(broker: Broker,
                                                            google: Standin) -> None:
    google.script(MINT, Step(delay_s=1.0))
    reply, took_s = timed(broker)
    assert reply.token and 0.9 < took_s < 1.0 + 0.5 * FACTOR


def test_a_mint_that_hangs_is_503_after_2500_ms_and_fills_the_cache(broker: Broker,
                                                                    google: Standin) -> None:
    """kiam#217 and #496: who gives up cancels nothing, and the next one finds it done."""
    google.hold(MINT)
    reply, took_s = timed(broker)
    assert reply.status == 503 and 2.4 < took_s < 2.5 + 0.4 * FACTOR
    assert reply.header("Retry-After") == "1"
    assert reply.header("Content-Type") == "application/json"
    assert reply.json["error"] == "temporarily_unavailable"
    google.release(MINT)
    google.wait_for(MINT, answered=True)
    broker.until_token()
    assert google.count(MINT) == 1


def test_an_expired_token_is_never_served(broker: Broker, google: Standin) -> None:
    """gke-metadata-server#220: the cache kept expired tokens.

    google-auth-library-php#308: the cache had an end of its own, not the token's.
    """
    google.always(MINT, Step(life_s=2.5))
    seen: dict[str, int] = {}
    begun = time.monotonic()
    while len(seen) < 3 and time.monotonic() - begun < allowed(12):
        reply = broker.token()
        if reply.status == 200:
            seen.setdefault(reply.token, reply.expires_in)
            info = google.token_info(reply.token)
            assert info is not None and info.expires_ns > time.time_ns() - 50_000_000 * FACTOR
            assert reply.expires_in > 0
    assert len(seen) >= 3


def test_a_storm_of_clients_is_no_storm_of_mints(broker: Broker, google: Standin) -> None:
    """kubernetes#9410 and #28871: hot loops of clients.

    LianjiaTech/bella-openapi#386: storms of refreshes.
    """
    google.always(MINT, Step(life_s=STALE_S))
    begun = time.monotonic()
    with broker.client() as client:
        for _ in range(300):
            assert client.ask(TOKEN).token
    # one a second is what a token that is stale when it comes costs
    assert google.count(MINT) <= 2 + int(time.monotonic() - begun)


@pytest.mark.parametrize("step", [
    *(Step(fraction_digits=n) for n in range(1, 10)),
    *(Step(offset=offset) for offset in ("+00:00", "-00:00", "+05:30", "-11:45", "+14:00")),
    Step(fraction_digits=9, offset="+05:30"), Step(no_date=True), Step(headers={"Age": "0"}),
    Step(content_type="application/json"), Step(big_body=200_000),
], ids=repr)
def test_every_form_of_a_good_answer_is_read(broker: Broker, google: Standin, step: Step) -> None:
    """0 to 9 fraction digits and any offset; gcloud and Python fail with a fraction.

    google-api-dotnet-client#1838: a fraction of nine digits was not read.
    """
    google.script(MINT, step)
    assert 3590 <= broker.token().expires_in <= 3600


def test_life_is_never_more_than_was_asked_for(broker: Broker, google: Standin) -> None:
    google.script(MINT, Step(expire_time="2999-01-01T00:00:00Z"))
    assert 3590 <= broker.token().expires_in <= 3600


def test_life_counts_by_googles_clock(broker: Broker, google: Standin) -> None:
    google.clock_offset_s = -7200.0
    assert 3590 <= broker.token().expires_in <= 3600
    broker.wait_for_log(r"^warning: clock: .* ahead of ")


def test_waiters_behind_the_margin_share_one_mint(broker: Broker, google: Standin) -> None:
    """google-cloud-go#12586: several began the one refresh."""
    google.script(MINT, Step(life_s=STALE_S))
    first = broker.token()
    google.hold(MINT)
    wait_for_second_mint(broker, google)
    clients = [broker.client() for _ in range(20)]
    try:
        for client in clients:
            client.send(request(TOKEN))
        assert {client.read().token for client in clients} == {first.token}
    finally:
        for client in clients:
            client.close()
    assert google.count(MINT) == 2
