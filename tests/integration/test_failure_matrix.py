# SPDX-License-Identifier: Apache-2.0
"""Every source and every failure at each of its steps, in each moment of a token's life: contract,
section 5. Some of the cells in the ordinary run, all of them with POSTERN_LONG=1.

A cell is a broker and a Google of its own. Most of its time is a backoff, so several run at once.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.google.script import KINDS, Step
from tests.google.standin import ACCOUNT, USER, Standin

from . import leaks
from .broker import Broker
from .conftest import new_directory
from .deadline import FACTOR, eventually
from .failure_matrix import LOGGED, MINT, STEPS, TEMPORARY, Case, chosen, every_case
from .gcloud import program
from .http1 import Reply
from .test_mint_failures import explanation
from .test_sources import ALLOW, MIDDLE, from_file, printed

pytestmark = pytest.mark.real_time

AT_ONCE = 12
# the first token's life by phase, with the default margin of 300 s
LIFE_S = {"due": 500, "stale": 200, "expired": 1.5}
# what the source's own token is good for where its step is to be met again
SOURCE_LIFE_S = 1
SOURCE_IS_OVER_S = 1.5
ASKED_WITHOUT_A_BODY = ("subjectToken", "metadataUniverse", "metadataEmail", "metadataToken")
CASES = list(every_case()) if os.environ.get("POSTERN_LONG") == "1" else chosen()
if FACTOR > 1:
    CASES = CASES[::8]  # only the faults of a wrapped broker count


class World:
    """One source, its Google, and the step that is to fail."""

    def __init__(self, case: Case, google: Standin) -> None:
        self.case, self.google = case, google
        self.fault_file = google.directory / "fault"
        self.runs = google.directory / "runs"
        self.answer = google.directory / "answer"
        self.subject = google.directory / "subject-token"
        self.env: dict[str, str] = {}
        google.add_account(MIDDLE)
        for caller in (USER, google.principal()):
            google.grant(caller, MIDDLE)
        google.grant(MIDDLE, ACCOUNT)
        # libcurl asks once more where a kept connection is reset, unless the request has a body
        self.good = Step(close=case.step in ASKED_WITHOUT_A_BODY)
        for kind in KINDS:
            google.always(kind, self.good)
        self.source: dict[str, Any] = getattr(self, f"_{case.source}")()

    def _authorized_user(self) -> dict[str, Any]:
        return from_file(self.google.write_adc())

    def _service_account(self) -> dict[str, Any]:
        return from_file(self.google.write_service_account())

    def _external_file(self) -> dict[str, Any]:
        return from_file(self.google.write_external_account())

    def _external_url(self) -> dict[str, Any]:
        self.google.new_subject_token()
        return from_file(self.google.write_external_account(source={
            "url": self.google.subject_token_url + "?format=json",
            "format": {"type": "json", "subject_token_field_name": "value"}}),
            subject_token_hosts="127.0.0.1")

    def _program(self) -> Path:
        return program(self.google.directory, f"date +%s.%N >> {self.runs}\n"
                       f"if [ -s {self.fault_file} ]; then . {self.fault_file}; exit $?; fi\n"
                       f"cat {self.answer}")

    def _external_executable(self) -> dict[str, Any]:
        self.env = ALLOW
        self.answer.write_text(printed(self.google.new_subject_token()))
        return from_file(self.google.write_external_account(source={
            "executable": {"command": str(self._program())}}))

    def _external_impersonated(self) -> dict[str, Any]:
        return from_file(self.google.write_external_account(impersonate=MIDDLE))

    def _impersonated(self) -> dict[str, Any]:
        return from_file(self.google.write_impersonated(account=MIDDLE))

    def _gcloud(self) -> dict[str, Any]:
        self._log_in(3600)
        return {"type": "gcloud", "gcloud": self._program()}

    def _metadata(self) -> dict[str, Any]:
        return {"type": "metadata", "metadata_host": self.google.metadata_host}

    def _log_in(self, life_s: int) -> None:
        """What gcloud prints from now on."""
        expiry = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + life_s))
        self.answer.write_text(json.dumps({
            "configuration": {"properties": {"core": {"account": USER}}},
            "credential": {"access_token": self.google.issue_source_token(),
                           "token_expiry": expiry}}))

    @property
    def kind(self) -> str:
        """The stand-in's name for the step."""
        return MINT if self.case.step == "impersonate" else self.case.step

    @property
    def is_chain(self) -> bool:
        """Whether the source's own account is impersonated, too."""
        return self.case.source.endswith("impersonated")

    def settings(self, host: str = "127.0.0.1") -> dict[str, Any]:
        """Of the broker. Another host of an endpoint that is not called is another source."""
        other = "oauth2" if self.case.source.startswith("external") else "sts"
        return {"source": self.source,
                "endpoints": {other: f"https://{host}:{self.google.port}"}}

    def arrange(self) -> None:
        """What makes the first token be of the phase, and the step be met again after it."""
        again = self.case.step != MINT
        if again:
            for kind in ("token", "sts", "metadataToken"):
                self.google.script(kind, replace(self.good, expires_in=SOURCE_LIFE_S))
            if self.case.source == "gcloud":
                self._log_in(3)
        if self.is_chain:
            self.google.script(MINT, replace(self.good, life_s=1.9 if again else 3600))
        self.google.script(MINT, replace(self.good, life_s=LIFE_S[self.case.phase]))

    def break_it(self) -> None:
        """The next one meets the fault; the one after it does not."""
        what = self.case.fault.step
        # at the first mint the chain's other one comes before
        behind = self.case.phase == "first" and self.is_chain and self.case.step == MINT
        if what is None:
            self.google.hold(self.kind)
            if behind:
                self.google.release(self.kind, 1)
        elif isinstance(what, Step):
            self.google.script(self.kind, *([self.good] if behind else []), what)
        elif self.case.step == "file":
            self.subject.unlink() if what == "absent" else self.subject.write_text("\n")
        else:
            self.fault_file.write_text(what + "\n")

    def mend(self) -> None:
        """What a program or a file is the cause of; the stand-in is well by itself."""
        self.google.release(self.kind) if self.case.fault.step is None else None
        if self.case.source == "gcloud":
            self._log_in(3600)
        if self.case.step == "file":
            self.subject.write_text(self.google.new_subject_token())
        elif isinstance(self.case.fault.step, str):
            self.fault_file.write_text("")

    def change(self) -> bool:
        """The file of the source becomes another one; False where it has none."""
        path = self.source.get("file")
        if path is None:
            return False
        new = Path(f"{path}.new")
        new.touch(mode=0o600)
        new.write_text(json.dumps({**json.loads(path.read_text()), "changed": True}))
        new.rename(path)
        return True

    def times(self, step: str | None = None) -> list[float]:
        """When a step was met, by default the one that fails; a file is read without a trace."""
        step = step or self.case.step
        if step in ("executable", "gcloud"):
            return [float(line) for line in self.runs.read_text().split()] \
                if self.runs.exists() else []
        if step in (MINT, "impersonate"):
            return [call.mono for call in self.google.calls_of(MINT)
                    if (MIDDLE in call.path) == (step == "impersonate")]
        return [call.mono for call in self.google.calls if call.kind == step]

    def calls_behind(self) -> int:
        """How often the steps were met that come after the one that fails."""
        steps = STEPS[self.case.source]
        return sum(len(self.times(step)) for step in steps[steps.index(self.case.step) + 1:])


class Cell:
    """A case that is being run."""

    def __init__(self, case: Case, world: World, broker: Broker) -> None:
        self.case, self.world, self.broker = case, world, broker
        self.old = ""  # the token before the fault
        self.before, self.behind = 0, 0

    @property
    def serves_old(self) -> bool:
        """Whether there is a token that may be served still."""
        return self.case.phase in ("due", "stale")

    def met(self) -> int:
        """How often the step was met since the fault began."""
        return 1 if self.case.step == "file" else len(self.world.times()) - self.before

    def run(self) -> None:
        """All of it."""
        if self.case.phase != "first":
            self._get_old()
        self.before = len(self.world.times())
        self.behind = self.world.calls_behind()
        self.world.break_it()
        begun = time.monotonic()
        reply = self.broker.token()
        took_s = time.monotonic() - begun
        if self.case.fault.step is None:
            self._check_hang(reply, took_s)
        else:
            ref = self._check_answer(reply)
            self._check_report(ref)
            self._check_held(reply, begun)
        self._check_recovery()

    def _get_old(self) -> None:
        self.world.arrange()
        reply = self.broker.until_token()
        self.old = reply.token
        begun = time.monotonic()
        if self.case.phase == "expired":
            eventually("the end of the token", lambda: self.broker.status()["profiles"][0][
                "token"]["state"] == "expired")
        if self.case.step != MINT:
            eventually("the end of the source's token",
                       lambda: time.monotonic() > begun + SOURCE_IS_OVER_S)

    def _check_hang(self, reply: Reply, took_s: float) -> None:
        if self.serves_old:
            assert reply.token == self.old
            assert took_s < 1 if self.case.phase == "due" else 0.25 < took_s < 1.3
        else:
            assert reply.status == 503 and 2.4 < took_s < 4
            assert explanation(reply)[0] == TEMPORARY and reply.header("Retry-After") == "1"
        eventually("the call", lambda: self.met() == 1)
        assert not self.broker.audit_of("token.mint", result="failed")

    def _check_answer(self, reply: Reply) -> str | None:
        """The reference, where there is a refusal."""
        if self.serves_old:
            assert reply.token == self.old
            return None
        assert reply.status == (403 if self.case.fault.is_permanent else 503), reply
        text, ref = explanation(reply)
        assert text == self.case.fault.text
        if not self.case.fault.is_permanent:
            # 1 s and up to 1 s of jitter
            assert 1 <= int(reply.header("Retry-After") or 0) <= 2
        return ref

    def _check_report(self, ref: str | None) -> None:
        fault = self.case.fault
        audit = self.broker.wait_for_audit("token.mint", result="failed")
        assert ref in (None, audit["ref"])
        if ref:
            assert self.broker.wait_for_audit("request.refuse", ref=ref)
        line = self.broker.wait_for_log(rf"^.*mint failed: ref={audit['ref']} .*$")[0]
        found = re.search(r" account=(\S+) step=(\S+) http_status=(\d+) reason=(\S+) .*"
                          r"class=(\S+) .*hint=\"[^\"]{10,}\"", line)
        assert found, line
        account, step, status, reason, kind = found.groups()
        assert account == audit["account"] == ACCOUNT
        assert step == LOGGED.get(self.case.step, self.case.step)
        assert int(status) == audit["http_status"]
        assert fault.http_status in (None, int(status)), line
        assert re.fullmatch(fault.reason, reason), line
        assert reason == audit["reason"]
        assert kind == audit["class"] == ("permanent" if fault.is_permanent else "transient")

    def _check_held(self, reply: Reply, begun: float) -> None:
        """Nothing is asked of Google before the backoff is over."""
        for _ in range(3):
            again = self.broker.token()
            met, behind = self.met(), self.world.calls_behind()
            if time.monotonic() - begun > 0.9 and not self.case.fault.is_permanent:
                return
            assert again.status == reply.status
            if reply.status == 200:
                assert again.token == self.old
            else:
                assert explanation(again) == explanation(reply)
            assert met == 1 and behind == self.behind

    def _change_source(self) -> None:
        """By its file, which is watched; by the configuration where there is none."""
        if not self.world.change():
            self.broker.configure(**self.world.settings("localhost"))
            assert self.broker.reload()["result"] == "ok"

    def _check_recovery(self) -> None:
        self.world.mend()
        if self.case.fault.is_permanent:
            self._change_source()
        new = self.broker.until(lambda reply: reply.status == 200 and reply.token != self.old,
                                timeout_s=2.0 if self.case.fault.is_permanent else 5.0).token
        issued = self.world.google.token_info(new)
        assert issued is not None and issued.minted and issued.principal == ACCOUNT
        if self.case.fault.step is None:
            assert self.met() == 1
            return
        assert len(self.broker.audit_of("token.mint", result="failed")) == 1
        if self.case.step == "file":
            return
        assert self.met() == 2
        first, second = self.world.times()[-2:]
        if not self.case.fault.is_permanent:
            # 1 s, up to 1 s of jitter, and what a loaded machine takes
            assert 0.95 < second - first < 2 + 1


def run_case(case: Case, directory: Path) -> None:
    """One cell, on its own."""
    with Standin() as google:
        try:
            world = World(case, google)
            with Broker(directory, google, env=world.env, **world.settings()) as broker:
                Cell(case, world, broker).run()
        finally:
            leaks.note(google.secrets())


@pytest.fixture(scope="module")
def cells(artifacts: Path, request: pytest.FixtureRequest) -> Iterator[dict[str, Future[None]]]:
    """All that were collected, several at once."""
    cases = [item.callspec.params["case"] for item in request.session.items
             if isinstance(item, pytest.Function) and item.path == request.path]
    with ThreadPoolExecutor(AT_ONCE if FACTOR == 1 else 2) as pool:
        yield {case.id: pool.submit(run_case, case, new_directory(artifacts, case.id))
               for case in cases}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_failure(cells: dict[str, Future[None]], case: Case) -> None:
    """google-auth-library-python#1850: every kind of source goes through the mint.

    google-cloud-go#20563: the margin counts for every kind of source.
    """
    cells[case.id].result()
