# SPDX-License-Identifier: Apache-2.0
"""What came of a run, kept for the report."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

from . import versions
from .wire import Request

FILE = Path(__file__).resolve().parents[2] / "build" / "clients" / "results.json"


@dataclass
class Result:
    """One client's."""

    version: str
    passed: list[str] = field(default_factory=list)  # names of tests
    failed: list[str] = field(default_factory=list)
    asked: dict[str, int] = field(default_factory=dict)  # requests by path


class Recorder:
    """A plugin of pytest that writes FILE at the end of a run."""

    def __init__(self) -> None:
        self._results: dict[str, Result] = {}

    def _of(self, client: str) -> Result:
        if client not in self._results:
            self._results[client] = Result(versions.of(client))
        return self._results[client]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Any:
        """Each phase of a test of a client; a test that fails in two has failed once."""
        report = (yield).get_result()
        called = getattr(item, "callspec", None)
        if called is None or "client" not in called.params:
            return
        result, name = self._of(called.params["client"]), getattr(item, "originalname", item.name)
        if report.failed:
            result.failed = sorted({*result.failed, name})
        elif report.when == "call" and report.passed:
            result.passed = sorted({*result.passed, name})

    def note(self, requests: list[Request]) -> None:
        """What all of them asked."""
        for client, asked in Counter((each.client, each.path) for each in requests).items():
            self._of(client[0]).asked[client[1]] = asked

    def pytest_sessionfinish(self) -> None:
        """The results so far, also of a run that was cut short, beside those of other clients."""
        if self._results:
            results = (read() if FILE.exists() else {}) | self._results
            FILE.parent.mkdir(parents=True, exist_ok=True)
            FILE.write_text(json.dumps({name: asdict(result) for name, result
                                        in sorted(results.items())}, indent=1) + "\n")


def read() -> dict[str, Result]:
    """Of each client's last run."""
    return {name: Result(**result) for name, result in json.loads(FILE.read_text()).items()}
