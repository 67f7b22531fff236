# SPDX-License-Identifier: Apache-2.0
"""Every command of the README that can run here, run as it stands there.

`console` blocks need Google; `sh` blocks are run: the variables of the sandbox are read by a client, the
commands by hand run in a fresh copy of the tree. `scripts/test` is what runs this.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]


def blocks() -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)


def block_with(text: str) -> str:
    found = [block for block in blocks() if text in block]
    assert len(found) == 1, text
    return found[0]


@pytest.fixture
def fresh_copy(tmp_path: Path) -> Path:
    """What a clone of the tree as it stands has: tracked files, and new ones that are not ignored."""
    tree = tmp_path / "postern"
    names = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    return tree


def run(script: str, cwd: Path, timeout_s: float) -> str:
    """In a network of its own: the README's ports may be taken on this host."""
    done = subprocess.run(
        [*NAMESPACE, "bash", "-euo", "pipefail", "-c", f"ip link set lo up\nset -m\n{script}\nwait"],
        cwd=cwd, capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_block_is_known_here() -> None:
    known = ["scripts/demo\n", "scripts/test\n", "meson setup build", "GCE_METADATA_HOST="]
    assert len(blocks()) == len(known)
    for text in known:
        block_with(text)


def test_the_commands_by_hand_build_serve_and_end(fresh_copy: Path) -> None:
    out = run(block_with("meson setup build"), fresh_copy, timeout_s=300)
    assert re.search(r'\{"access_token":"offline\.[0-9a-f]+","expires_in":3[56]\d\d,"token_type":"Bearer"\}', out)
    assert '"source":{"type":"offline"' in out
    assert not (fresh_copy / "postern.sock").exists()


def test_the_demo_passes_and_leaves_nothing_running(fresh_copy: Path) -> None:
    out = run(block_with("scripts/demo\n"), fresh_copy, timeout_s=300)
    assert "should be" not in out
    assert len(re.findall(r" 40[345] | 413 ", out)) >= 10
    assert "nothing is left running" in out


def test_the_variables_of_the_sandbox_are_those_of_the_contract() -> None:
    variables = dict(pair.split("=", 1) for pair in block_with("GCE_METADATA_HOST=").split())
    host = "host.docker.internal"
    assert variables == {
        "GCE_METADATA_HOST": f"{host}:8174",
        "GCE_METADATA_IP": f"{host}:8174",
        "GCE_METADATA_ROOT": f"{host}:8174",
        "METADATA_SERVER_DETECTION": "assume-present",
        "GCE_METADATA_MTLS_MODE": "none",
        "NO_PROXY": host,
        "no_proxy": host,
    }
