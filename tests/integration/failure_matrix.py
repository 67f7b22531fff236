# SPDX-License-Identifier: Apache-2.0
"""Which failures there are at which step of which source, and what is expected of each.

The rows are those of the error tables of IAM Credentials, of the OAuth2 endpoint, of the token service
and of the metadata server, and what can happen to any answer.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.google.script import Step

TEMPORARY = "credential temporarily unavailable"
NOT_ALLOWED = "the broker may not use this account"
NO_ACCOUNT = "account not available"
LOGIN_EXPIRED = "the host's login has expired"

MINT = "generateAccessToken"
SEED = 20261129


@dataclass(frozen=True)
class Fault:
    """What a step meets, and what follows from it."""

    name: str
    step: Step | str | None  # of the stand-in; text: what a program does; None: it does not answer
    text: str = TEMPORARY
    http_status: int | None = None  # None: any
    reason: str = r"\S+"

    @property
    def is_permanent(self) -> bool:
        """Whether it is kept until somebody mends it."""
        return self.text != TEMPORARY


def _status(status: int, text: str = TEMPORARY) -> Fault:
    return Fault(str(status), Step(status=status), text, status)


def _reason(reason: str, status: int = 403, text: str = NOT_ALLOWED) -> Fault:
    return Fault(reason, Step(reason=reason), text, status, reason)


def _oauth(error: str, text: str, status: int = 400) -> Fault:
    return Fault(error, Step(oauth_error=error, status=status), text, status, error)


def _rapt(subtype: str) -> Fault:
    return Fault(subtype, Step(error_subtype=subtype), LOGIN_EXPIRED, 400, subtype)


HANG = Fault("hang", None)
# whatever server that is
ANY = [
    _status(429), _status(500), _status(502), _status(503), _status(504),
    Fault("html", Step(html=True), http_status=502),
    Fault("redirect", Step(redirect="https://198.51.100.254/"), http_status=302),
    Fault("reset", Step(reset=True), http_status=0, reason="broken"),
    Fault("truncated", Step(truncate_at=10), http_status=0, reason="broken"),
    HANG,
]
BROKEN_OAUTH2 = [
    Fault("missing", Step(missing="access_token"), reason="bad_answer"),
    Fault("html-200", Step(html=True, status=200), reason="bad_answer"),
    Fault("408", Step(status=408), http_status=408),
    _oauth("internal_failure", TEMPORARY), _oauth("server_error", TEMPORARY),
    _oauth("temporarily_unavailable", TEMPORARY),
    _oauth("invalid_grant", LOGIN_EXPIRED), _oauth("invalid_scope", NOT_ALLOWED),
    _oauth("access_denied", NOT_ALLOWED),
]
AT_MINT = [
    *ANY,
    Fault("missing", Step(missing="accessToken"), reason="bad_answer"),
    Fault("no-expiry", Step(missing="expireTime"), reason="bad_answer"),
    Fault("html-200", Step(html=True, status=200), reason="bad_answer"),
    _status(400, NOT_ALLOWED), _status(404, NO_ACCOUNT),
    _reason("ACCESS_TOKEN_EXPIRED", 401, TEMPORARY),
    _reason("ACCESS_TOKEN_TYPE_UNSUPPORTED", 401),
    _reason("IAM_PERMISSION_DENIED"), _reason("SERVICE_DISABLED"),
    _reason("ACCESS_TOKEN_SCOPE_INSUFFICIENT"), _reason("USER_PROJECT_DENIED"),
    _reason("SECURITY_POLICY_VIOLATED"),
]
# by the name of a step: what may happen there
FAULTS: dict[str, list[Fault]] = {
    MINT: AT_MINT,
    "impersonate": AT_MINT,
    "token": [
        *ANY, *BROKEN_OAUTH2, _rapt("invalid_rapt"), _rapt("rapt_required"),
        _oauth("invalid_client", LOGIN_EXPIRED, 401),
        _oauth("unauthorized_client", LOGIN_EXPIRED, 401),
        _oauth("deleted_client", LOGIN_EXPIRED, 401),
    ],
    "sts": [
        *ANY, *BROKEN_OAUTH2, _oauth("invalid_target", NOT_ALLOWED),
        _oauth("unauthorized_client", NOT_ALLOWED, 401),
        _oauth("invalid_client", NOT_ALLOWED, 401),
    ],
    "subjectToken": [
        *ANY, _status(401, NOT_ALLOWED), _status(403, NOT_ALLOWED), _status(404, NOT_ALLOWED),
        Fault("missing", Step(body={"count": 1}), reason="no_subject_token"),
    ],
    "metadataUniverse": [
        *ANY, _status(403, NOT_ALLOWED),
        Fault("no-flavor", Step(missing="Metadata-Flavor"), NOT_ALLOWED,
              reason="no_metadata_server"),
    ],
    "metadataToken": [
        *ANY, _status(403, NOT_ALLOWED), _status(404, NOT_ALLOWED),
        Fault("missing", Step(missing="access_token"), reason="bad_answer"),
        Fault("no-expiry", Step(missing="expires_in"), reason="bad_answer"),
    ],
    "file": [Fault("no-file", "absent", reason="subject_token_file"),
             Fault("empty-file", "empty", reason="no_subject_token")],
    "executable": [
        Fault("exit", "exit 7", http_status=0, reason="executable_failed"),
        Fault("killed", "kill -9 $$", http_status=0, reason="executable_killed"),
        Fault("answer", "echo words", http_status=0, reason="executable_answer"),
        Fault("refused", """echo '{"version": 1, "success": false, "code": "401", "message": "m"}'""",
              NOT_ALLOWED, 0, "401"),
    ],
    "gcloud": [
        Fault("exit", "exit 1", http_status=0, reason="gcloud_failed"),
        Fault("login", "echo invalid_grant >&2; exit 1", LOGIN_EXPIRED, 0, "gcloud_login"),
        Fault("killed", "kill -9 $$", http_status=0, reason="gcloud_killed"),
        Fault("answer", "echo words", http_status=0, reason="gcloud_answer"),
    ],
}

# what a mint of each source goes through, in order
STEPS: dict[str, list[str]] = {
    "authorized_user": ["token", MINT],
    "service_account": [MINT],
    "external_file": ["file", "sts", MINT],
    "external_url": ["subjectToken", "sts", MINT],
    "external_executable": ["executable", "sts", MINT],
    "external_impersonated": ["sts", "impersonate", MINT],
    "impersonated": ["token", "impersonate", MINT],
    "gcloud": ["gcloud", MINT],
    "metadata": ["metadataUniverse", "metadataToken", MINT],
}

# how the log names a step, where it is another name
LOGGED = {"token": "source", "subjectToken": "subject_token", "file": "subject_token",
          "executable": "subject_token", "metadataUniverse": "metadata",
          "metadataToken": "metadata"}

PHASES = ("first", "due", "stale", "expired")


@dataclass(frozen=True)
class Case:
    """One cell."""

    source: str
    step: str
    fault: Fault = field(repr=False)
    phase: str

    @property
    def id(self) -> str:
        """Its name in a report."""
        return f"{self.source}-{self.step}-{self.fault.name}-{self.phase}"

    def pairs(self) -> set[tuple[int, str, int, str]]:
        """What it covers of two things at once."""
        what = (self.source, self.step, self.fault.name, self.phase)
        return {(i, a, j, b) for (i, a), (j, b) in itertools.combinations(enumerate(what), 2)}


def every_case() -> Iterator[Case]:
    """The full product."""
    for source, steps in STEPS.items():
        for step, phase in itertools.product(steps, PHASES):
            if step == "metadataUniverse" and phase != "first":
                continue  # asked once
            for fault in FAULTS[step]:
                yield Case(source, step, fault, phase)


def chosen() -> list[Case]:
    """So many that any two of source, step, failure and phase that go together are met together, but
    for a source and a failure; the same at each run."""
    cases = list(every_case())
    random.Random(SEED).shuffle(cases)
    left = [(case, {pair for pair in case.pairs() if (pair[0], pair[2]) != (0, 2)})
            for case in cases]
    picked = []
    while left:
        case, covered = max(left, key=lambda each: len(each[1]))
        picked.append(case)
        left = [(other, pairs - covered) for other, pairs in left if pairs - covered]
    return picked
