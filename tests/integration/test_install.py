# SPDX-License-Identifier: Apache-2.0
"""What `meson install` puts where, and that it is what the pages and the programs look for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from .broker import ROOT

PREFIX = "usr/local"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree that is tested, installed below a folder."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run(["meson", "install", "--no-rebuild", "--quiet", "-C", os.environ.get("POSTERN_BUILD") or
                    str(ROOT / "build/asan"), "--destdir", str(folder)], check=True, capture_output=True, timeout=120)
    return folder / PREFIX


def test_it_is_these_files(installed: Path) -> None:
    assert sorted(str(path.relative_to(installed)) for path in installed.rglob("*") if path.is_file()) == [
        "bin/postern", "bin/posternd", "lib/systemd/system/postern.service", "lib/sysusers.d/postern.conf",
        "libexec/postern/host-firewall", "libexec/postern/postern-door"]


def test_the_unit_starts_the_program_that_is_installed(installed: Path) -> None:
    unit = (installed / "lib/systemd/system/postern.service").read_text()
    assert f"ExecStart=/{PREFIX}/bin/posternd\n" in unit
    # Contract 2: the paths of the service, and what a restart must not replace.
    for line in ("User=postern", "Group=postern", "Type=notify", "RuntimeDirectory=postern",
                 "RuntimeDirectoryPreserve=restart", "LogsDirectory=postern"):
        assert f"\n{line}\n" in unit
