# SPDX-License-Identifier: Apache-2.0
"""Each endpoint shows its own profile, as it was written, and nothing of another."""

from __future__ import annotations

from tests.google.script import Step
from tests.google.standin import USER, Standin

from .conftest import Starter
from .deadline import eventually
from .http1 import ACCOUNTS, TOKEN, request

MINT = "generateAccessToken"

V1 = "/computeMetadata/v1"


def test_profiles_never_cross(start: Starter) -> None:
    """identity-metadata-server 2.2.0: another identity's token; hush-house#46: its project."""
    broker = start(profiles={
        "one": {"service_account": "one@p-one.iam.gserviceaccount.com", "project": "p-one"},
        "two": {"service_account": "two@p-two.iam.gserviceaccount.com", "project": "p-two"}})
    tokens = {name: broker.token(name).token for name in ("one", "two")}
    assert tokens["one"] != tokens["two"]
    for name, other in (("one", "two"), ("two", "one")):
        account = f"{name}@p-{name}.iam.gserviceaccount.com"
        assert broker.token(name).token == tokens[name]
        assert broker.get(f"{V1}/project/project-id", name).text == f"p-{name}"
        assert broker.get(f"{ACCOUNTS}/default/email", name).text == account
        assert broker.get(f"{ACCOUNTS}/{account}/token", name).token == tokens[name]
        assert broker.get(f"{ACCOUNTS}/{account}/token", other).status == 404  # kube2iam#15


def test_one_refused_source_token_is_one_refusal_however_many_used_it(start: Starter,
                                                                     google: Standin) -> None:
    """Two mints went out with the same cached token: that is no login that has ended."""
    accounts = {name: f"{name}@my-project.iam.gserviceaccount.com" for name in ("one", "two")}
    for account in accounts.values():
        google.add_account(account)
        google.grant(USER, account)
    broker = start(google, profiles={n: {"service_account": a} for n, a in accounts.items()})
    google.script(MINT, Step(status=401), Step(status=401))
    google.hold(MINT)
    with broker.client("one") as one, broker.client("two") as two:
        one.send(request(TOKEN))
        two.send(request(TOKEN))
        google.wait_for(MINT, 2)
        google.release(MINT)
        assert {one.read().status, two.read().status} == {503}
    for name in accounts:
        eventually("a token", lambda name=name: broker.token(name).status == 200)


def test_a_clock_that_is_off_costs_one_try(start: Starter, google: Standin) -> None:
    """google-api-php-client#1501, google-cloud-python#15080: a signed assertion of another hour."""
    google.clock_offset_s = 7200
    broker = start(google, source={"type": "file", "file": google.write_service_account()})
    assert broker.token().status == 503
    assert "behind Google's time" in broker.log
    eventually("a token", lambda: broker.token().status == 200)
    assert google.count(MINT) == 2


def test_a_profile_without_a_number_has_no_route_for_it(start: Starter) -> None:
    """A 404 is better than a number that is none: gcloud takes any digits for the truth."""
    broker = start()
    assert broker.get(f"{V1}/project/numeric-project-id").status == 404
    assert broker.get(f"{V1}/project/").text == "project-id\n"


def test_scopes_are_served_in_the_order_they_are_written(start: Starter) -> None:
    scopes = [f"https://www.googleapis.com/auth/{name}" for name in ("b", "a", "c")]
    broker = start(profiles={"vertex": {"scopes": ", ".join(scopes)}})
    assert broker.get(f"{ACCOUNTS}/default/scopes").text == "".join(f"{s}\n" for s in scopes)
    assert broker.get(f"{ACCOUNTS}/default/?recursive=true").json["scopes"] == scopes


def test_the_universe_is_the_configurations(start: Starter) -> None:
    broker = start(endpoints={"universe_domain": "s3nsapis.fr"})
    assert broker.get(f"{V1}/universe/universe-domain").text == "s3nsapis.fr"


def test_a_file_of_the_configured_universe_is_fine(start: Starter, google: Standin) -> None:
    broker = start(google, endpoints={"universe_domain": "s3nsapis.fr"}, source={
        "type": "file", "file": google.write_adc(universe_domain="S3NSapis.fr")})
    assert broker.get("/").status == 200


def test_the_advertised_host_is_one_of_the_endpoints_names(start: Starter) -> None:
    broker = start(profiles={"vertex": {"advertise_host": "gateway.example"}})
    for host, status in (("gateway.example", 200), ("GATEWAY.example.:8174", 200),
                         ("localhost", 200), ("host.docker.internal", 403),
                         ("gateway.example.evil.example", 403), ("xgateway.example", 403)):
        assert broker.get("/", host=host).status == status, host


def test_a_source_that_is_lost_later_is_kept(start: Starter, google: Standin) -> None:
    """The last good identity; a reload without it is refused."""
    file = google.write_adc(google.directory / "lost.json")
    broker = start(google, source={"type": "file", "file": file},
                   profiles={"one": {}, "two": {"lifetime": "30m"}})
    assert broker.token("one").token
    file.unlink()
    assert broker.token("two").token
    assert broker.reload()["result"] == "refused"
    assert broker.token("two").token
