# SPDX-License-Identifier: Apache-2.0
"""`postern run` by a plain user, and from a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import struct
import subprocess
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .deadline import allowed
from .engine import IMAGE, Engine
from .launch import ASK, Place, broker_in, launcher, standin_in

UID, GID = 4711, 4712


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """One that every user may enter, unlike pytest's."""
    path = Path(tempfile.mkdtemp(prefix="pu-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


WAYS = pytest.mark.parametrize("attach", ["gateway", "inside"])


@WAYS
def test_a_plain_user_s_sandbox_has_the_user_s_ids(engine: Engine, open_directory: Path,
                                                   attach: str) -> None:
    program = open_directory / "postern"
    shutil.copy(launcher(), program)
    (open_directory / "door").mkdir()
    shutil.copy(Path(launcher()).with_name("door") / "postern-door", open_directory / "door")
    with standin_in(engine) as google, broker_in(engine, open_directory, google) as broker:
        place = Place(engine, open_directory, broker)
        for path in (place.runtime, place.workspace):
            os.chown(path, UID, GID)
        os.chmod(broker.control_path, 0o666)
        os.chmod(engine.socket, 0o666)
        os.chmod(engine.directory, 0o711)
        done = subprocess.run(
            [*engine.namespace.prefix, "setpriv", f"--reuid={UID}", f"--regid={GID}", "--clear-groups",
             program, "run", "--owner", place.owner, "--attach", attach, "--allow-unverified-firewall", "--workspace",
             place.workspace, IMAGE,
             "sh", "-c", f"id -u; id -g; touch /workspace/mine; {ASK}"],
            env=place.environment(), cwd=open_directory, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=allowed(60), check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.split()[:2] == [str(UID), str(GID)]
        assert "access_token" in done.stdout
        assert (place.workspace / "mine").stat().st_uid == UID
        assert broker.audit_of("session.open")[0]["uid"] == UID
        assert place.is_clean()


def read_until(fd: int, text: bytes, timeout_s: float = 20.0) -> bytes:
    """What a terminal shows, until it shows the text (or nothing more)."""
    seen, end = b"", time.monotonic() + allowed(timeout_s)
    while text not in seen and time.monotonic() < end:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                seen += os.read(fd, 4096)
            except OSError:
                break
    return seen


@WAYS
def test_a_terminal_is_passed_with_its_size_and_its_keys(place: Place, attach: str) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    process = subprocess.Popen(
        [*place.engine.namespace.prefix, launcher(), "run", "--owner", place.owner, "--tty",
         "--attach", attach, "--allow-unverified-firewall", IMAGE, "sh", "-c",
         "tty; sleep 0.5; stty size; trap 'echo interrupted; exit 9' INT; echo waiting; "
         "while :; do sleep 0.1; done"],
        env=place.environment({"TERM": "dumb"}), stdin=theirs, stdout=theirs, stderr=theirs,
        cwd=place.directory, start_new_session=True)
    os.close(theirs)
    try:
        seen = read_until(ours, b"waiting")
        assert b"/dev/" in seen and b"33 77" in seen, seen
        os.write(ours, b"\x03")
        assert b"interrupted" in read_until(ours, b"interrupted")
        assert process.wait(allowed(30)) == 9
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert place.is_clean()
