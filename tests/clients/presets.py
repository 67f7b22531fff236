# SPDX-License-Identifier: Apache-2.0
"""What the launcher tells an agent: taken from the start of a container, not written again."""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from pathlib import Path

from tests.integration.launch import launcher
from tests.integration.stub_broker import VARIABLES, StubBroker
from tests.integration.stub_engine import StubEngine

RUN_S = 60


@functools.cache
def variables(preset: str) -> dict[str, str]:
    """Those of `--agent PRESET` in a session of the project my-project."""
    kept = {name: value for name, value in os.environ.items()
            if name.endswith("SAN_OPTIONS") or name == "ASAN_SYMBOLIZER_PATH"}
    with tempfile.TemporaryDirectory() as made, StubBroker(Path(made, "control.sock")):
        engine = StubEngine(Path(made, "engine"))
        os.mkdir(Path(made, "runtime"), 0o700)
        subprocess.run(
            [launcher(), "--control", Path(made, "control.sock"), "run", "--owner", "clients",
             "--allow-unverified-firewall", "--agent", preset, "image:1", "agent"],
            env=kept | {"PATH": f"{engine.bin}:/usr/bin:/bin", "HOME": made,
                        "XDG_RUNTIME_DIR": f"{made}/runtime"},
            cwd=made, stdin=subprocess.DEVNULL, timeout=RUN_S, check=True)
        started = engine.started()
        # a name without a value is one that the image shall not have
        named = {started.argv[i + 1] for i, argument in enumerate(started.argv)
                 if argument == b"-e"} & started.environ.keys()
        return {name.decode(): started.environ[name].decode() for name in named
                if name.decode() not in VARIABLES}
