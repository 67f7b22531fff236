# SPDX-License-Identifier: Apache-2.0
"""What the launcher asks an engine before a run, and how: by a stand-in for its client."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .deadline import allowed
from .engine import PATH
from .launch import launcher

# Each question waits until all three were asked: asked one after the other they would never be answered.
TOGETHER = """#!/bin/sh
cd "${0%/*}" || exit 1
case $1 in
info | image | ps)
	: >"asked-$1"
	left=1000
	until [ -e asked-info ] && [ -e asked-image ] && [ -e asked-ps ]; do
		left=$((left - 1))
		[ $left -gt 0 ] || exit 1
		sleep 0.01
	done
	;;
esac
case $1 in
info) echo '{"ServerVersion":"24.0.7"}' ;;
image) echo '[{"Config":{"User":""}}]' ;;
container) echo '[{"State":{"Running":false,"ExitCode":0,"StartedAt":"2026-01-02T03:04:05Z"}}]' ;;
run)
	: >ran
	for argument; do
		case $argument in
		--cidfile=*) printf %064d 1 >"${argument#*=}" ;;
		esac
	done
	;;
esac
"""
# As `docker info --format` of some versions when there is no daemon: exit status 0.
GONE = """#!/bin/sh
[ "$1" != info ] || echo '{"ServerErrors":["Cannot connect to the Docker daemon"],"ClientInfo":{}}'
"""


def run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """A keyed run, for which no broker is asked, by that client."""
    program = folder / "docker"
    program.write_text(script)
    program.chmod(0o755)
    return subprocess.run(
        [launcher(), "run", "--provider", "gemini", "image:1", "true"], text=True,
        capture_output=True, stdin=subprocess.DEVNULL, timeout=allowed(60), check=False,
        env={"PATH": f"{folder}:{PATH}", "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)})


def test_an_engine_is_asked_for_everything_at_once(tmp_path: Path) -> None:
    ran = run(tmp_path, TOGETHER)
    assert ran.returncode == 0, ran
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("script, said", [
    (GONE, "the engine does not answer: docker info: \"Cannot connect to the Docker daemon\""),
    ("#!/bin/sh\necho no socket >&2\nexit 1\n", "the engine does not answer: docker info: \"no socket\""),
    ("#!/bin/sh\n[ \"$1\" != info ] || echo '{}'\n", "docker says no version"),
])
def test_125_is_an_engine_without_a_daemon(tmp_path: Path, script: str, said: str) -> None:
    ran = run(tmp_path, script)
    assert ran.returncode == 125, ran
    assert said in ran.stderr
