# SPDX-License-Identifier: Apache-2.0
"""The time zone of the host, and the form of expireTime, change nothing."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.google.script import Step
from tests.google.standin import USER, Standin

from .conftest import Starter
from .deadline import FACTOR, eventually
from .gcloud import config_helper

pytestmark = pytest.mark.real_time


@pytest.fixture(autouse=True)
def zone_files() -> None:
    """Without its file, a zone is UTC to the C library."""
    for zone in ZONES:
        assert Path("/usr/share/zoneinfo", zone).is_file(), "no tzdata; run scripts/bootstrap"


MINT = "generateAccessToken"
ZONES = ["UTC", "America/Los_Angeles", "Asia/Kolkata"]
LIFE_S = 1800
FORMS = [
    Step(life_s=LIFE_S), Step(life_s=LIFE_S, fraction_digits=1),
    Step(life_s=LIFE_S, fraction_digits=3), Step(life_s=LIFE_S, fraction_digits=9),
    *(Step(life_s=LIFE_S, offset=offset, fraction_digits=digits)
      for offset in ("+00:00", "-08:00", "-07:00", "+05:30", "+14:00", "-12:00")
      for digits in (0, 9)),
]


@pytest.mark.parametrize("zone", ZONES)
def test_a_token_lives_as_long_in_every_zone(start: Starter, google: Standin, zone: str) -> None:
    """google-auth-library-java#931 and #932: expireTime was read in the host's zone.

    A token counted as valid for eight hours too long, or as dead.
    """
    profiles = {f"p{n}": {"lifetime": f"{3600 - n}s"} for n in range(len(FORMS))}
    broker = start(google, env={"TZ": zone}, profiles=profiles)
    for name, form in zip(profiles, FORMS, strict=True):
        google.script(MINT, form)
        reply = broker.token(name)
        assert LIFE_S - 5 * FACTOR <= reply.expires_in <= LIFE_S + 1, (form, reply)
        assert broker.token(name).token == reply.token
    assert google.count(MINT) == len(FORMS)
    said = broker.audit_of("token.mint")[0]["time"]
    assert said.endswith("Z")
    when = datetime.fromisoformat(said.replace("Z", "+00:00"))
    assert abs(when.timestamp() - time.time()) < 60 * FACTOR


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("offset", ["Z", "+05:30", "-08:00"])
def test_a_token_that_has_expired_has_expired_in_every_zone(start: Starter, google: Standin,
                                                            zone: str, offset: str) -> None:
    """A minute ago in UTC is hours ahead as a local time of some zone."""
    minutes = 0 if offset == "Z" else int(offset[0] + "1") * (
        int(offset[1:3]) * 60 + int(offset[4:]))
    ago = datetime.now(timezone.utc) - timedelta(seconds=60)
    local = (ago + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%S.5")
    google.always(MINT, Step(expire_time=local + offset))
    broker = start(google, env={"TZ": zone})
    assert broker.token().status == 503
    assert broker.audit_of("token.mint", result="failed")


@pytest.mark.parametrize("zone", ZONES)
def test_gclouds_expiry_is_utc_in_every_zone(start: Starter, google: Standin, zone: str) -> None:
    """Its token is kept until then: nine minutes of it are as good in each zone."""
    expiry = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 540))
    gcloud = config_helper(google.directory, USER, google.issue_source_token(), expiry)
    broker = start(google, source={"type": "gcloud", "gcloud": gcloud}, env={"TZ": zone},
                   profiles={"one": {}, "two": {"lifetime": "30m"}})
    for profile in ("one", "two"):
        assert eventually("a token", lambda name=profile: broker.token(name).status == 200)
    assert (google.directory / "runs").read_text() == "run\n"
