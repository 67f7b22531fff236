# SPDX-License-Identifier: Apache-2.0
"""Every command of the README that can run here, run as it stands there, and the harness page's.

`console` blocks need Google; `sh` blocks are run: the variables of the sandbox are read by a client, the
commands by hand run in a fresh copy of the tree, what needs an engine beside the suite's own, with its
image for IMAGE. `scripts/test` is what runs this.
"""

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from . import engine as engines
from .engine import IMAGE
from .launch import ASK, Place, launcher

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]


def blocks(page: str = "README.md") -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)


def block_with(text: str, page: str = "README.md") -> str:
    found = [block for block in blocks(page) if text in block]
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
    known = ["scripts/demo\n", "scripts/test\n", "meson setup build", "GCE_METADATA_HOST=",
             "postern run "]
    assert len(blocks()) == len(known)
    for text in known:
        block_with(text)


def test_the_commands_by_hand_build_serve_and_end(fresh_copy: Path) -> None:
    before = set(fresh_copy.iterdir())
    out = run(block_with("meson setup build"), fresh_copy, timeout_s=300)
    assert re.search(r'\{"access_token":"offline\.[0-9a-f]+","expires_in":3[56]\d\d,"token_type":"Bearer"\}', out)
    assert '"source":{"type":"offline"' in out
    assert out.rstrip().endswith("{}")
    assert not (fresh_copy / "build" / "postern.sock").exists()
    assert set(fresh_copy.iterdir()) - before == {fresh_copy / "build"}


def left_by_the_demo(scratch: Path) -> list[Path]:
    """Its namespaces, and what it has made in its folder for temporary files."""
    return [*Path("/run/netns").glob("postern-demo-*"), *scratch.iterdir()]


def interrupt(tree: Path, scratch: Path) -> int:
    """The demo's status where a signal comes while its sandbox runs."""
    with subprocess.Popen(["scripts/demo"], cwd=tree, env={**os.environ, "TMPDIR": str(scratch)},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if line.startswith("A sandbox:"):
                break
        demo.send_signal(signal.SIGTERM)
        demo.stdout.read()
        return demo.wait(60)


def test_the_demo_passes_and_leaves_nothing_however_it_ends(fresh_copy: Path) -> None:
    reason = engines.missing()
    if reason is not None:
        pytest.skip(reason)
    # Short, for the sockets in it.
    scratch = Path("/tmp", f"pd-{os.getpid()}")
    scratch.mkdir()
    scratch.chmod(0o711)
    try:
        out = run(f"export TMPDIR={scratch}\n{block_with('scripts/demo' + chr(10))}", fresh_copy,
                  timeout_s=300)
        assert "should be" not in out and "should not be" not in out
        assert len(re.findall(r" 40[345] | 413 ", out)) >= 17
        assert "its token, from 169.254.169.254" in out and "no name and no value" in out
        assert "nothing is left running" in out
        assert not left_by_the_demo(scratch)
        assert interrupt(fresh_copy, scratch) == 143
        assert not left_by_the_demo(scratch)
    finally:
        shutil.rmtree(scratch)


def in_place(script: str, place: Place) -> subprocess.CompletedProcess[str]:
    """Beside an engine and a broker, as an operator who has `postern` in the PATH."""
    path = f"{Path(launcher()).parent}:{place.path}"
    return subprocess.run(
        [*place.engine.namespace.prefix, "bash", "-euo", "pipefail", "-c", script],
        env=place.environment({"PATH": path, "ANTHROPIC_MODEL": "a-model"}), cwd=place.workspace,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)


def write_kubeconfig(home: Path) -> None:
    def named(key: str, value: object) -> list[object]:
        return [{"name": "bench", key: value}]

    (home / ".kube").mkdir()
    (home / ".kube" / "config").write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config",
        "clusters": named("cluster", {"server": "https://192.0.2.10:6443"}),
        "users": named("user", {"token": "t"}),
        "contexts": named("context", {"cluster": "bench", "user": "bench"})}))


def test_the_launcher_runs_as_the_readme_says(place: Place) -> None:
    write_kubeconfig(place.directory)
    block = block_with("postern run ")
    assert len(block.splitlines()) == 5
    agent = "IMAGE claude -p 'mend the tests'"
    assert agent in block
    wanted = "env && cat $KUBECONFIG && pwd && touch /workspace/here"
    block = block.replace(agent, f"{IMAGE} sh -c '{wanted}'")

    planned = in_place(block.replace("postern run", "postern run --dry-run"), place)
    assert planned.returncode == 0, planned.stderr
    assert "/creds" in planned.stdout and "ANTHROPIC_MODEL" in planned.stdout
    assert not (place.workspace / "here").exists()

    ran = in_place(block, place)
    assert ran.returncode == 0, ran.stderr
    assert "CLAUDE_CODE_USE_VERTEX=1" in ran.stdout and "ANTHROPIC_MODEL=a-model" in ran.stdout
    assert '"current-context":"bench"' in re.sub(r"\s", "", ran.stdout)
    assert (place.workspace / "here").exists()
    assert place.is_clean()


def test_a_harness_of_its_own_works_as_its_page_says(place: Place) -> None:
    block = block_with("postern env", "docs/harness.md")
    assert "IMAGE COMMAND" in block
    ran = in_place(block.replace("IMAGE COMMAND", f"{IMAGE} sh -c '{ASK}'"), place)
    assert ran.returncode == 0, ran.stderr
    assert place.google.token_info(json.loads(ran.stdout)["access_token"]) is not None
    assert not place.sessions()


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
