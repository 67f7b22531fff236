# SPDX-License-Identifier: Apache-2.0
"""A door whose container has a user namespace of its own (`userns-remap`): its root is nobody on the host, and
its network belongs to that user namespace."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from . import engine as engines
from .attacked import broker  # noqa: F401 - fixtures
from .broker import Broker
from .door_program import METADATA_V4
from .engine import REMAPPED_ROOT, Engine
from .procfs import status
from .sandboxes import USER, Sandbox, network
from .test_door_inside import IP_CHANGES, TOKEN_OF, shown


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """One of its own, that gives its containers a user namespace."""
    reason = engines.missing()
    if reason is not None:
        pytest.skip(reason)
    with engines.running("postern-remapped", remapped=True) as running:
        yield running


def test_it_is_served_and_held_as_elsewhere(engine: Engine, broker: Broker) -> None:
    with network(engine, "mapped0", 5) as bridge, Sandbox(engine, broker, "--network", bridge) as sandbox:
        assert status(sandbox.door.pid, "Uid").split()[1] == str(REMAPPED_ROOT)
        assert status(sandbox.agent.pid, "Uid").split()[1] == str(REMAPPED_ROOT + 1000)
        done = sandbox.agent.sh(TOKEN_OF.format(METADATA_V4))
        assert "access_token" in json.loads(done.stdout)
        settings = sandbox.door.network()
        found = sandbox.agent.python("attack_binds.py", "80", settings["IPAddress"],
                                     settings["GlobalIPv6Address"], "1", who=USER)
        assert found["forms"] == 432 and found["bound"] == []
        before = shown(sandbox)
        assert "8: from all to 169.254.169.254 ipproto udp" in " ".join(before.split())
        said = sandbox.agent.sh(f"ip -batch - <<'END'\n{IP_CHANGES}END\nip address del 169.254.169.254/32 dev lo",
                                "--user", "0:0")
        assert said.returncode != 0 and shown(sandbox) == before
