# SPDX-License-Identifier: Apache-2.0
"""No secret of the run is in anything that the broker, the clients or pytest wrote. Runs last."""

from __future__ import annotations

from pathlib import Path

from tests.integration import leaks


def test_no_secret_is_in_what_the_suite_wrote(artifacts: Path, said: list[str]) -> None:
    (artifacts / "pytest").write_text("\n".join(said))
    written = [path for path in artifacts.rglob("stderr") if path.stat().st_size]
    assert written and leaks.known, "nothing was written: run all of tests/clients"
    assert leaks.find(artifacts, leaks.known) == []
