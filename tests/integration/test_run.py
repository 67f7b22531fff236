# SPDX-License-Identifier: Apache-2.0
"""What crosses into a sandbox of a real engine, and what does not."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from .engine import BAKED
from .launch import ASK, Place

# Nothing that the operator has may be found by these.
CANARY = "canary-7f3a9c"


def test_the_first_request_gets_a_token_through_the_host_s_name(place: Place) -> None:
    ran = place.sh(f"{ASK} && echo $GCE_METADATA_HOST >&2")
    info = place.google.token_info(ran.token)
    assert info is not None and info.minted
    assert "host.docker.internal:" in ran.err
    assert place.is_clean()


def test_curl_gets_the_same(place: Place) -> None:
    ran = place.sh('curl -sf -H "Metadata-Flavor: Google" http://$GCE_METADATA_HOST/computeMetadata/'
                   "v1/instance/service-accounts/default/token")
    assert place.google.token_info(ran.token) is not None


def test_a_run_that_asks_for_nothing_mints_nothing(place: Place) -> None:
    assert place.run("true").status == 0
    assert place.google.count("generateAccessToken") == 0
    assert place.is_clean()


@pytest.mark.parametrize("preflight, minted", [("none", 0), ("grant", 0), ("mint", 1)])
def test_the_preflight_is_the_broker_s(place: Place, preflight: str, minted: int) -> None:
    assert place.run("true", options=["--preflight", preflight]).status == 0
    assert len(place.google.minted) == minted


def test_the_session_outlives_the_timeout_by_a_minute(place: Place) -> None:
    assert place.run("true", options=["--timeout", "5m"]).status == 0
    assert place.broker.audit_of("session.open")[0]["ttl_s"] == 360


def test_a_variable_of_the_image_that_leads_to_credentials_is_gone(place: Place) -> None:
    names = {line.partition("=")[0] for line in place.sh("env").out.splitlines()}
    assert "BAKED_HARMLESS" in names and "BAKED_HARMLESS" in BAKED
    assert "GOOGLE_APPLICATION_CREDENTIALS" not in names


def test_the_command_is_neither_root_nor_privileged(place: Place) -> None:
    out = place.sh("id -u; grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status").out.split()
    assert out == ["1000", "CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]


def plant(home: Path) -> dict[str, str]:
    """What an operator has lying about, each with the canary in it."""
    gcloud = home / ".config" / "gcloud"
    gcloud.mkdir(parents=True)
    for path in (gcloud / "application_default_credentials.json", home / ".netrc",
                 home / "adc.json"):
        path.write_text(CANARY)
    (home / ".docker").mkdir()
    (home / ".docker" / "config.json").write_text(json.dumps(
        {"proxies": {"default": {"httpProxy": f"http://u:{CANARY}@127.0.0.1:9"}}}))
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(home / "adc.json"), "SSH_AUTH_SOCK": f"/{CANARY}",
            "AWS_SECRET_ACCESS_KEY": CANARY, "GITHUB_TOKEN": CANARY, "MY_OWN": CANARY,
            "HTTPS_PROXY": f"http://{CANARY}", "CLOUDSDK_AUTH_ACCESS_TOKEN": CANARY}


SEARCH = """
env; cat /proc/1/environ /proc/self/environ; cat /proc/mounts
find / -xdev -type s 2>/dev/null
for top in /etc /tmp /workspace /run /var /creds /root /home /mnt /baked; do
	grep -r -s CANARY $top | sed 's/^/found: /'
done
""".replace("CANARY", CANARY[:6] + "[-]" + CANARY[7:])  # the script itself does not match


def test_what_the_operator_has_is_nowhere_in_the_sandbox(place: Place) -> None:
    env = plant(place.directory)
    asked = [arg for name in env for arg in ("--env", name) if name != "MY_OWN"
             and name != "HTTPS_PROXY"]
    ran = place.sh(SEARCH, env=env, options=[*asked, "--workspace", place.workspace])
    assert ran.status in (0, 1), ran
    assert CANARY not in ran.out and "found: " not in ran.out
    assert "docker.sock" not in ran.out and str(place.directory) not in ran.out.replace(
        str(place.workspace), "")
    assert CANARY not in ran.err
    assert "variables refused: " in ran.err


def test_the_search_finds_what_does_lie_in_the_sandbox(place: Place) -> None:
    (place.workspace / "planted").write_text(f"refresh {CANARY}\n")
    ran = place.sh(SEARCH, options=["--workspace", place.workspace])
    assert re.findall("^found: .*", ran.out, re.M) == [f"found: /workspace/planted:refresh {CANARY}"]


def record_engine(place: Place) -> Path:
    """Puts a `docker` before the real one that writes its arguments down."""
    folder = place.directory / "bin"
    folder.mkdir()
    record = folder / "argv"
    program = folder / "docker"
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >>{record}\nexec /usr/bin/docker \"$@\"\n")
    program.chmod(0o755)
    place.path = f"{folder}:{place.path}"
    return record


def test_no_value_is_in_an_argument_vector_and_no_token_in_inspect(place: Place) -> None:
    record = record_engine(place)
    value = "value-of-mine-4711"
    others = set(Path("/proc").glob("[0-9]*"))  # a value such as "none" may be a word of theirs
    run = place.start_sh(f"{ASK} >token && test ${{#MINE}} = {len(value)} && sleep 60",
                         env={"MINE": value}, options=["--env", "MINE", "--workspace",
                                                       place.workspace])
    token = json.loads(place.workspace_file("token"))["access_token"]
    assert token not in json.dumps(place.engine.inspect(place.running()))
    # The endpoint's host is the flag --add-host, too; it is no secret.
    values = {value, token, *place.sessions()[0]["env"].values()} - {"host.docker.internal"}
    arguments = record.read_text()
    vectors = [arguments.encode(), *arguments_but_of(others)]
    assert len(vectors) > 2 and "run\n" in arguments
    for each in values:
        assert not [vector for vector in vectors if each.encode() in vector], each
    run.signal(signal.SIGTERM)
    assert run.wait().status == 143


def arguments_but_of(others: set[Path]) -> Iterator[bytes]:
    """The argument vectors of the processes that are not among these."""
    for path in set(Path("/proc").glob("[0-9]*")) - others:
        with contextlib.suppress(OSError):
            yield (path / "cmdline").read_bytes()


def test_the_workspace_is_the_agent_s_and_home_is_in_it(place: Place) -> None:
    ran = place.sh("pwd; echo $HOME; touch mine $HOME/mine",
                   options=["--workspace", place.workspace])
    assert ran.status == 0, ran
    assert ran.out.split()[1] == "/workspace/home"
    assert (place.workspace / "home" / "mine").exists()


def test_a_mounted_socket_is_refused_before_anything_starts(place: Place) -> None:
    path = place.directory / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        assert stat.S_ISSOCK(os.stat(path).st_mode)
        ran = place.run("true", options=["--mount", f"{path}:/run/s"])
    assert ran.status == 3
    assert not place.broker.audit_of("session.open")
