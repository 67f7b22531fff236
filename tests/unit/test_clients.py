# SPDX-License-Identifier: Apache-2.0
"""scripts/clients knows its clients, and a run of none of them is no success."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients import facts

ROOT = Path(__file__).resolve().parents[2]
ABSENT = "no-such-program-of-postern"
# A client that is not there, as tests/clients/facts.py tells of it.
TREE = {
    "scripts/bootstrap": "#!/bin/sh\n",
    "scripts/clients.d/install.sh": "find_tools() { return 0; }\ninstall_one() { return 1; }\n",
    "tests/clients/facts.py": f"print('gone tool {ABSENT}')\nprint('lost tool {ABSENT}')\n",
}


def clients(root: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """The script of a tree."""
    return subprocess.run([root / "scripts/clients", *args], capture_output=True, text=True,
                          check=False, timeout=60)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """One whose clients cannot be had."""
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    shutil.copy(ROOT / "scripts/clients", tmp_path / "scripts")
    return tmp_path


@pytest.mark.parametrize("names", [["gone"], ["gone", "lost"]])
def test_clients_that_are_all_absent_are_failures_by_name(tree: Path, names: list[str]) -> None:
    ran = clients(tree, "test", *names)
    assert ran.returncode == 1
    assert ran.stdout.splitlines()[-1] == f"0 passed, {len(names)} failed"
    for name in names:
        assert f"clients: {name} could not be tested: there is no {ABSENT}\n" in ran.stderr


def test_all_clients_are_listed() -> None:
    listed = clients(ROOT, "list").stdout.split()
    assert listed == facts.all_names() and len(listed) >= 18
    assert len([name for name in listed if facts.of(name).role == "agent"]) >= 4
