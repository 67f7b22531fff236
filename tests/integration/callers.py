# SPDX-License-Identifier: Apache-2.0
"""Control clients of other users: a child of that user connects and hands its socket over, whose
SO_PEERCRED stays the child's (unix(7)). Needs root."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from .broker import Broker
from .deadline import allowed
from .http1 import Client

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")

# Two users and a group of no account.
ALICE, BOB = 54321, 54322
GROUP = "games"  # Debian has it on every machine, and nobody in it

_CONNECT = """
import socket, sys
with socket.socket(fileno=int(sys.argv[1])) as out:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(sys.argv[2])
        socket.send_fds(out, [b"."], [sock.fileno()])
"""


def client_of(broker: Broker, uid: int, gid: int, groups: Sequence[int] = ()) -> Client:
    """A control connection as that user; the directory need not be reachable for it."""
    path = Path(broker.control_path)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _CONNECT, str(theirs.fileno()), path.name],
            cwd=path.parent, user=uid, group=gid, extra_groups=list(groups),
            pass_fds=[theirs.fileno()], capture_output=True, timeout=allowed(20), check=False)
        if b"PermissionError" in done.stderr:
            raise PermissionError(path.name)
        assert done.returncode == 0, done.stderr
        _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    client = Client.__new__(Client)
    client.sock = socket.socket(fileno=fds[0])
    client.sock.settimeout(allowed(10))
    client._buffer = b""  # pylint: disable=protected-access
    return client
