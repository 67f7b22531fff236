# SPDX-License-Identifier: Apache-2.0
"""What a sandbox, the log and the audit trail are told when there is no token."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.google.script import Step
from tests.google.standin import ACCOUNT, USER, Standin

from . import leaks
from .broker import Broker
from .conftest import Starter, new_directory
from .http1 import Reply

MINT = "generateAccessToken"

TEMPORARY = "credential temporarily unavailable"
NOT_ALLOWED = "the broker may not use this account"
NO_ACCOUNT = "account not available"
LOGIN_EXPIRED = "the host's login has expired"


def explanation(reply: Reply) -> tuple[str, str]:
    """The fixed text and the reference of a refusal, whose form must be right."""
    assert reply.header("Content-Type") == "application/json"
    assert reply.header("Metadata-Flavor") == "Google"
    body = reply.json
    assert set(body) == {"error", "error_description"}
    assert body["error"] == {503: "temporarily_unavailable", 403: "access_denied"}[reply.status]
    match = re.fullmatch(r"(.+) \(ref ([0-9a-f]{8})\)", body["error_description"])
    assert match, body
    if reply.status == 503:
        assert re.fullmatch(r"[1-9][0-9]*", reply.header("Retry-After") or "")
    else:
        assert reply.header("Retry-After") is None
    return match[1], match[2]


def assert_reported(broker: Broker, ref: str) -> str:
    """The reference is in the log and in the audit trail; gives the log's line."""
    line = broker.wait_for_log(rf"^.*\bref={ref}\b.*$")[0]
    assert broker.audit_of("token.mint", ref=ref, result="failed")
    assert broker.audit_of("request.refuse", ref=ref)
    return line


TRANSIENT = {
    "500": Step(status=500), "502": Step(status=502), "503": Step(status=503),
    "504": Step(status=504), "429": Step(status=429),
    "html 502": Step(html=True), "html 200": Step(html=True, status=200),
    "truncated": Step(truncate_at=10), "empty": Step(truncate_at=0),
    # libcurl tries once more where a kept connection is reset, hence a new one
    "503 and closed": Step(status=503, close=True), "reset": Step(reset=True),
    "no JSON": Step(body="no JSON"), "a JSON list": Step(body=[]), "nothing": Step(body=""),
    "half a JSON": Step(body='{"accessToken":"x","expireTime":'),
    "no accessToken": Step(missing="accessToken"), "no expireTime": Step(missing="expireTime"),
    "expireTime of words": Step(expire_time="tomorrow"),
    "expireTime of digits": Step(expire_time=1),
    "expireTime without offset": Step(expire_time="2999-01-01T00:00:00"),
    "expireTime passed": Step(expire_time="2001-01-01T00:00:00Z"),
    "accessToken of digits": Step(body={"accessToken": 1, "expireTime": "2999-01-01T00:00:00Z"}),
    "accessToken of nothing": Step(body={"accessToken": "", "expireTime": "2999-01-01T00:00:00Z"}),
    "accessToken with a line end": Step(body={"accessToken": "x\r\nY: z",
                                              "expireTime": "2999-01-01T00:00:00Z"}),
    "too large": Step(big_body=300_000), "redirect": Step(redirect="https://198.51.100.254/"),
    "401": Step(status=401, reason="ACCESS_TOKEN_EXPIRED"),
}


@pytest.fixture(scope="module")
def faulty(artifacts: Path, request: pytest.FixtureRequest) -> Iterator[dict[str, Outcome]]:
    """One broker meets all of them, each with a profile of its own, and all recover together."""
    profiles = {f"p{n}": {"lifetime": f"{3600 - n}s"} for n in range(len(TRANSIENT))}
    outcomes = {}
    with Standin() as google:
        with Broker(new_directory(artifacts, request.node.nodeid), google,
                    profiles=profiles) as broker:
            for profile, (name, step) in zip(profiles, TRANSIENT.items(), strict=True):
                google.script(MINT, step)
                reply = broker.token(profile)
                outcomes[name] = Outcome(broker, profile, reply, google.pending(MINT))
            for outcome in outcomes.values():
                outcome.recovers()
            yield outcomes
        leaks.note(google.secrets())


@dataclass
class Outcome:
    """What became of a fault."""

    broker: Broker
    profile: str
    reply: Reply
    pending: int
    recovered: bool = False

    def recovers(self) -> None:
        """Whether there is a token once the backoff is over."""
        with contextlib.suppress(AssertionError):
            self.recovered = self.broker.until_token(self.profile, 4).status == 200


@pytest.mark.real_time
@pytest.mark.parametrize("name", TRANSIENT)
def test_a_fault_of_google_is_503_and_over_when_google_is_well(
        faulty: dict[str, Outcome], name: str) -> None:
    outcome = faulty[name]
    assert outcome.pending == 0 and outcome.reply.status == 503
    text, ref = explanation(outcome.reply)
    assert text == TEMPORARY
    line = assert_reported(outcome.broker, ref)
    assert "class=transient" in line and f"profile={outcome.profile} account={ACCOUNT}" in line
    # 1 s and up to 1 s of jitter
    assert 1 <= int(outcome.reply.header("Retry-After") or 0) <= 2
    assert outcome.recovered


PERMANENT = {
    "IAM_PERMISSION_DENIED": (Step(reason="IAM_PERMISSION_DENIED"), NOT_ALLOWED),
    "SERVICE_DISABLED": (Step(reason="SERVICE_DISABLED"), NOT_ALLOWED),
    "SCOPE_INSUFFICIENT": (Step(reason="ACCESS_TOKEN_SCOPE_INSUFFICIENT"), NOT_ALLOWED),
    "USER_PROJECT_DENIED": (Step(reason="USER_PROJECT_DENIED"), NOT_ALLOWED),
    "SECURITY_POLICY_VIOLATED": (Step(reason="SECURITY_POLICY_VIOLATED"), NOT_ALLOWED),
    "403 html": (Step(html=True, status=403), NOT_ALLOWED),
    "404": (Step(status=404), NO_ACCOUNT),
    "400": (Step(status=400), NOT_ALLOWED),
}


@pytest.mark.parametrize("step, text", PERMANENT.values(), ids=PERMANENT.keys())
def test_a_refusal_by_google_is_403_and_kept(broker: Broker, google: Standin, step: Step,
                                             text: str) -> None:
    """google-cloud-java#13715: 4xx where trying again is of no use, which no client does."""
    google.script(MINT, step)
    reply = broker.token()
    assert reply.status == 403
    said, ref = explanation(reply)
    assert said == text
    line = assert_reported(broker, ref)
    assert "class=permanent" in line
    if step.reason:
        assert f"reason={step.reason}" in line and "http_status=403" in line
    for _ in range(5):
        assert explanation(broker.token()) == (text, ref)
    assert google.count(MINT) == 1
    failure = broker.status()["profiles"][0]["last_failure"]
    assert (failure["ref"], failure["class"]) == (ref, "permanent")


def test_the_log_names_the_missing_permission(broker: Broker, google: Standin) -> None:
    google.revoke(USER, ACCOUNT)
    _, ref = explanation(broker.token())
    line = assert_reported(broker, ref)
    assert "permission=iam.serviceAccounts.getAccessToken" in line
    audit = broker.audit_of("token.mint", ref=ref)[0]
    assert audit["reason"] == "IAM_PERMISSION_DENIED" and audit["http_status"] == 403
    assert audit["permission"] == "iam.serviceAccounts.getAccessToken"


def test_the_log_names_the_permission_where_google_does_not(broker: Broker,
                                                            google: Standin) -> None:
    google.script(MINT, Step(status=403, body={"error": {"code": 403, "message": "no"}}))
    _, ref = explanation(broker.token())
    assert "permission=iam.serviceAccounts.getAccessToken" in assert_reported(broker, ref)


def test_no_word_of_google_reaches_the_sandbox_or_the_log(broker: Broker, google: Standin) -> None:
    word = "zzyzx-upstream-words"
    google.script(MINT, Step(status=403, reason="IAM_PERMISSION_DENIED", message=word))
    reply = broker.token()
    _, ref = explanation(reply)
    assert_reported(broker, ref)
    assert word.encode() not in reply.body
    assert word not in broker.log


def test_no_word_of_the_token_endpoint_reaches_them_either(broker: Broker, google: Standin) -> None:
    word = "zzyzx-upstream-words"
    google.script("token", Step(oauth_error="invalid_grant", description=word))
    reply = broker.token()
    text, ref = explanation(reply)
    assert (reply.status, text) == (403, LOGIN_EXPIRED)
    assert_reported(broker, ref)
    assert google.pending("token") == 0 and google.count("token") == 1
    assert word.encode() not in reply.body
    assert word not in broker.log and word not in str(broker.audit)


def test_a_reason_that_is_no_word_is_not_passed_on(broker: Broker, google: Standin) -> None:
    reason = "X\nerror: forged=yes\x1b[2J"
    google.script(MINT, Step(status=403, body={"error": {"code": 403, "details": [{
        "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason,
        "metadata": {"permission": "a b\nc"}}]}}))
    _, ref = explanation(broker.token())
    line = assert_reported(broker, ref)
    assert "forged" not in broker.log and "\x1b" not in broker.log
    assert re.search(r" reason=[A-Za-z_]+ ", line)


LOGIN = {
    "invalid_grant": (Step(oauth_error="invalid_grant"), 403, LOGIN_EXPIRED),
    "invalid_rapt": (Step(error_subtype="invalid_rapt"), 403, LOGIN_EXPIRED),
    "rapt_required": (Step(error_subtype="rapt_required"), 403, LOGIN_EXPIRED),
    "deleted_client": (Step(oauth_error="deleted_client", status=401), 403, LOGIN_EXPIRED),
    "access_denied": (Step(oauth_error="access_denied", status=403), 403, NOT_ALLOWED),
    "500": (Step(status=500), 503, TEMPORARY), "503": (Step(status=503), 503, TEMPORARY),
    "429": (Step(status=429), 503, TEMPORARY),
    "internal_failure": (Step(oauth_error="internal_failure", status=400), 503, TEMPORARY),
    "html": (Step(html=True), 503, TEMPORARY), "reset": (Step(reset=True), 503, TEMPORARY),
    "truncated": (Step(truncate_at=20), 503, TEMPORARY),
    "no access_token": (Step(missing="access_token"), 503, TEMPORARY),
    "too large": (Step(big_body=300_000), 503, TEMPORARY),
    "redirect": (Step(redirect="https://198.51.100.254/"), 503, TEMPORARY),
}


@pytest.mark.parametrize("step, status, text", LOGIN.values(), ids=LOGIN.keys())
def test_a_fault_of_the_login_is_told_from_one_of_google(
        broker: Broker, google: Standin, step: Step, status: int, text: str) -> None:
    """oidc-agent#507: an expired login is said at once, and how to mend it.

    google-auth-library-nodejs#1961: invalid_rapt, and no word of the command that mends it.
    """
    google.script("token", step)
    reply = broker.token()
    assert reply.status == status
    said, ref = explanation(reply)
    assert said == text
    line = assert_reported(broker, ref)
    assert "step=source" in line and google.count(MINT) == 0
    if text == LOGIN_EXPIRED:
        assert "gcloud auth application-default login" in line


def test_a_refused_source_token_is_replaced_at_the_next_try(broker: Broker,
                                                            google: Standin) -> None:
    google.script(MINT, Step(reason="ACCESS_TOKEN_EXPIRED"))
    assert explanation(broker.token())[0] == TEMPORARY
    broker.until_token()
    assert (google.count("token"), google.count(MINT)) == (2, 2)
    one, two = (call.headers["authorization"] for call in google.calls_of(MINT))
    assert one != two


def test_a_login_that_is_refused_twice_is_expired(broker: Broker, google: Standin) -> None:
    google.always(MINT, Step(reason="ACCOUNT_STATE_INVALID"))
    assert explanation(broker.token())[0] == TEMPORARY
    reply = broker.until(lambda reply: reply.status == 403)
    assert explanation(reply)[0] == LOGIN_EXPIRED and google.count(MINT) == 2


@pytest.mark.real_time
def test_no_try_starts_before_its_backoff_is_over(broker: Broker, google: Standin) -> None:
    """1, 2, 4 … s plus jitter; identity-metadata-server#6: backoff with jitter."""
    google.always(MINT, Step(status=503))
    end = time.monotonic() + 6.5
    while time.monotonic() < end and google.count(MINT) < 3:
        reply = broker.token()
        assert explanation(reply)[0] == TEMPORARY
    calls = google.calls_of(MINT)[:3]
    assert len(calls) == 3
    first, second, third = (call.mono for call in calls)
    assert 0.95 <= second - first <= 2.6 and 1.95 <= third - second <= 3.6
    assert reply.status == 503 and 4 <= int(reply.header("Retry-After") or 0) <= 5


@pytest.mark.real_time
def test_retry_after_of_google_counts(broker: Broker, google: Standin) -> None:
    """identity-metadata-server#6."""
    google.script(MINT, Step(status=429, retry_after=7))
    for _ in range(10):
        reply = broker.token()
        assert explanation(reply)[0] == TEMPORARY
        assert 6 <= int(reply.header("Retry-After") or 0) <= 7
    assert google.count(MINT) == 1


@pytest.mark.real_time
def test_retry_after_counts_for_a_minute_at_most(broker: Broker, google: Standin) -> None:
    google.script(MINT, Step(status=503, retry_after=86400))
    assert 59 <= int(broker.token().header("Retry-After") or 0) <= 60


def test_a_redirect_is_never_followed(broker: Broker, google: Standin) -> None:
    for kind in ("token", MINT):
        google.script(kind, Step(redirect=f"{google.url}/elsewhere", status=307))
    assert explanation(broker.token())[0] == TEMPORARY
    broker.until_token(timeout_s=15)
    assert google.count("other") == 0


def test_other_profiles_do_not_suffer(start: Starter, google: Standin) -> None:
    """hush-house#46 the other way round: one account's refusal is no other's."""
    other = google.add_account("other@my-project.iam.gserviceaccount.com").email
    broker = start(google, profiles={"good": {}, "bad": {"service_account": other}})
    assert explanation(broker.token("bad"))[0] == NOT_ALLOWED
    assert broker.token("good").token


def test_liveness_does_not_depend_on_google(broker: Broker, google: Standin) -> None:
    """kfctl#48: killed five hundred times by its liveness probe."""
    google.always("token", Step(status=500))
    assert broker.token().status == 503
    assert broker.control("/healthz").status == 200
    assert broker.control("/readyz").status == 200
