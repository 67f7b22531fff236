# SPDX-License-Identifier: Apache-2.0
"""Input that cannot be used: exit 2, one line that says where and what to do, nothing started."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.google.standin import ACCOUNT, PROJECT

from . import configuration
from .broker import Broker, as_a_user, run

GOOD: dict[str, dict[str, Any]] = {
    "broker": {"control_socket": "{dir}/control.sock", "audit_log": "{dir}/audit.jsonl"},
    "source": {"type": "offline"},
    "profile vertex": {"service_account": ACCOUNT, "project": PROJECT, "listen": "127.0.0.1:0"},
}


def refusal(directory: Path, text: str | bytes | None, *options: str,
            prefix: list[str] | None = None, env: Mapping[str, str] | None = None) -> str:
    """The one line of a broker that does not start with this file (None: the file is there)."""
    file = directory / "postern.conf"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode("latin-1"))
    before = set(directory.iterdir())
    done = run(*options, "--config", file, home=directory, prefix=prefix or [], env=env)
    assert (done.returncode, done.stdout) == (2, ""), done
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: "), done.stderr
    left = {path.name for path in set(directory.iterdir()) - before} - {"stdout", "stderr"}
    assert left <= {"control.sock.lock", "audit.jsonl"}, left
    assert not (directory / "control.sock").exists()
    if "--check-config" in options:
        assert not left
    return lines[0]


def changed(directory: Path, changes: Mapping[str, Mapping[str, Any]]) -> str:
    """The good file with some keys changed (None: left out)."""
    sections = {name: dict(section) for name, section in GOOD.items()}
    for name, section in changes.items():
        sections.setdefault(name, {}).update(section)
    return configuration.render(sections).replace("{dir}", str(directory))


BOTH = pytest.mark.parametrize("options", [[], ["--check-config"]], ids=["serve", "check-config"])


def test_the_good_file_is_good(directory: Path) -> None:
    (directory / "postern.conf").write_text(changed(directory, {}))
    done = run("--check-config", "--config", directory / "postern.conf", home=directory)
    assert (done.returncode, done.stderr) == (0, "")
    assert str(directory / "postern.conf") in done.stdout
    assert {path.name for path in directory.iterdir()} == {"postern.conf", "stdout", "stderr",
                                                           "test"}


def profile(**settings: Any) -> dict[str, dict[str, Any]]:
    return {"profile vertex": settings}


def broker(**settings: Any) -> dict[str, dict[str, Any]]:
    return {"broker": settings}


# what is changed, and what the line must hold besides the file
SETTINGS: dict[str, tuple[Mapping[str, Mapping[str, Any]], list[str]]] = {
    "unknown key": (profile(colour="blue"), ["colour", "[profile vertex]"]),
    "unknown section": ({"brokr": {"log_level": "info"}}, ["brokr"]),
    "profile without name": ({"profile ": {"project": "x"}}, ["profile"]),
    "profile of capitals": ({"profile Vertex": {}}, ["Vertex"]),
    "profile too long": ({"profile " + "a" * 33: {}}, ["a" * 33]),
    "profile with a dot": ({"profile a.b": {}}, ["a.b"]),
    "wildcard": (profile(listen="0.0.0.0:0"), ["listen", "0.0.0.0:0", "allow_wildcard_listen"]),
    "wildcard of IPv6": (profile(listen="[::]:0"), ["listen", "[::]:0", "allow_wildcard_listen"]),
    "wildcard for sessions": (broker(session_listen="0.0.0.0"),
                              ["session_listen", "allow_wildcard_listen"]),
    "listen without port": (profile(listen="127.0.0.1"), ["listen", "ADDRESS:PORT"]),
    "listen by name": (profile(listen="localhost:8174"), ["listen", "localhost:8174"]),
    "listen too high": (profile(listen="127.0.0.1:65536"), ["listen", "65535"]),
    "two profiles at one place": (
        {"profile other": {"listen": "127.0.0.1:8174", "service_account": ACCOUNT,
                           "project": PROJECT},
         "profile vertex": {"listen": "127.0.0.1:8174"}}, ["[profile other]", "vertex"]),
    "no account": (profile(service_account=None), ["service_account", "vertex"]),
    "empty account": (profile(service_account=""), ["service_account"]),
    "account without @": (profile(service_account="agent"), ["service_account", "agent", "@"]),
    "account with two @": (profile(service_account="a@b@c.d"), ["service_account"]),
    **{f"account with {sign}": (profile(service_account=f"a{sign}b@p.iam.gserviceaccount.com"),
                                ["service_account", "e-mail"]) for sign in "/?#: %\\\"'"},
    "account beyond ASCII": (profile(service_account="\u00e4@p.iam.gserviceaccount.com"),
                             ["service_account", "\\xe4"]),
    "no project": (profile(project=None), ["project", "vertex"]),
    "project with /": (profile(project="a/b"), ["project", "a/b"]),
    **{f"lifetime {value}": (profile(lifetime=value), ["lifetime", "5m to 12h"])
       for value in ("4m", "299s", "43201s", "13h", "0", "-1h", "1d", "1", "abc", "", "1h30m",
                     "99999999999999999999h")},
    "refresh_margin 0": (profile(refresh_margin="0s"), ["refresh_margin"]),
    "no scopes": (profile(scopes=""), ["scopes", "https://"]),
    "scope that is none": (profile(scopes="cloud-platform"), ["scopes", "https://"]),
    "empty scope": (profile(scopes="https://a.example/x,,https://a.example/y"), ["scopes"]),
    "scope with a quote": (profile(scopes='https://a.example/"x'), ["scopes"]),
    "delegate that is none": (profile(delegates=f"{ACCOUNT}, me"), ["delegates", "me"]),
    "peers of no network": (profile(allow_peers="127.0.0.1/33"), ["allow_peers"]),
    "peers with host bits": (profile(allow_peers="172.17.0.1/16"),
                             ["allow_peers", "172.17.0.1/16"]),
    "peers of nothing": (profile(allow_peers=""), ["allow_peers"]),
    "unknown backend": (profile(backend="bedrock"), ["backend", "vertex"]),
    "number that is none": (profile(project_number="12x"), ["project_number"]),
    "sharing": (profile(token_sharing="both"), ["token_sharing", "session or profile"]),
    "log_level": (broker(log_level="loud"), ["log_level", "debug"]),
    "yes or no": (broker(audit_required="maybe"), ["audit_required", "yes or no"]),
    "audit required and off": (broker(audit_required="yes", audit_log="off"),
                               ["audit_required", "audit_log"]),
    "relative control socket": (broker(control_socket="control.sock"),
                                ["control_socket", "absolute"]),
    "long control socket": (broker(control_socket="/tmp/" + "a" * 110), ["control_socket", "107"]),
    "no sessions": (broker(max_sessions="0"), ["max_sessions"]),
    "no connections": (broker(endpoint_connections="0"), ["endpoint_connections", "1 to 2048"]),
    "too many connections": (broker(endpoint_connections="2049"), ["endpoint_connections"]),
    "rate of words": (broker(endpoint_rate="fast"), ["endpoint_rate"]),
    "unknown source": ({"source": {"type": "aws"}}, ["type", "aws", "gcloud, metadata, offline"]),
    "gcloud beside another type": ({"source": {"gcloud": "/usr/bin/gcloud"}},
                                   ["gcloud", "type = gcloud"]),
    "metadata server of our own": ({"source": {"metadata_host": "127.0.0.1:8174",
                                               "type": "metadata"},
                                    "profile vertex": {"listen": "127.0.0.1:8174"}},
                                   ["metadata_host", "vertex"]),
    "file without one": ({"source": {"type": "file"}}, ["type", "file"]),
    "file beside another type": ({"source": {"file": "/etc/postern/source.json"}}, ["file"]),
    "plain http": ({"endpoints": {"iamcredentials": "http://198.51.100.254"}},
                   ["iamcredentials", "https"]),
    "plain http to loopback": ({"endpoints": {"oauth2": "http://127.0.0.1:1"}},
                               ["oauth2", "allow_http_loopback"]),
    "URL with a path": ({"endpoints": {"oauth2": "https://oauth2.googleapis.com/token"}},
                        ["oauth2", "https://HOST"]),
    "URL with a user": ({"endpoints": {"oauth2": "https://a@oauth2.googleapis.com"}}, ["oauth2"]),
    "URL of another kind": ({"endpoints": {"sts": "ftp://sts.googleapis.com"}}, ["sts"]),
}


@BOTH
@pytest.mark.parametrize("changes, holds", SETTINGS.values(), ids=SETTINGS.keys())
def test_a_bad_setting_is_named_with_its_line(
        directory: Path, options: list[str], changes: Mapping[str, Mapping[str, Any]],
        holds: list[str]) -> None:
    text = changed(directory, changes)
    line = refusal(directory, text, *options)
    assert f"{directory}/postern.conf" in line
    for each in holds:
        assert each in line, line
    assert any(f"{directory}/postern.conf:{number}:" in line
               for number in lines_of(text, changes)), line


def lines_of(text: str, changes: Mapping[str, Mapping[str, Any]]) -> set[int]:
    """Where the first change stands: its section's line, and its key's."""
    section, keys = next(iter(changes.items()))
    begin = text.split("\n").index(f"[{section}]") + 1
    after = enumerate(text.split("\n")[begin:], begin + 1)
    key = next(iter(keys), "[")
    return {begin, *[number for number, each in after if each.startswith(f"{key} =")][:1]}


# what is added to the good file, and what the line must hold; the last line of it is the bad one
LINES: dict[str, tuple[str, list[str]]] = {
    "no key": ("lifetime\n", ["lifetime", "key = value"]),
    "no value's key": ("= 1h\n", ["key = value"]),
    "no end of section": ("[endpoints\n", ["[endpoints", "]"]),
    "no name of section": ("[]\n", ["[]"]),
    "key twice": ("project = other\n", ["project", "line 10"]),
    "section twice": ("[source]\n", ["[source]", "line 5"]),
    "indented": (" lifetime = 1h\n", ["indented"]),
    "indented by a tab": ("\tlifetime = 1h\n", ["indented"]),
    "continued": ("scopes = https://a.example/x,\n  https://a.example/y\n", ["indented"]),
    "over-long": ("# " + "x" * 10000 + "\n", ["10002 bytes"]),
    "over-long value": ("location = " + "x" * 5000 + "\n", ["bytes"]),
    "NUL": ("location = a\0b\n", ["0x00"]),
    "escape": ("location = a\x1b[2Jb\n", ["0x1b"]),
    "line ends of DOS": ("location = global\r\n", ["0x0d"]),
}


@BOTH
@pytest.mark.parametrize("added, holds", LINES.values(), ids=LINES.keys())
def test_a_bad_line_is_named(directory: Path, options: list[str], added: str,
                             holds: list[str]) -> None:
    text = changed(directory, {}) + added
    line = refusal(directory, text, *options)
    assert f"{directory}/postern.conf:{text.count(chr(10))}:" in line
    for each in holds:
        assert each in line, line
    assert "\x1b" not in line


@BOTH
def test_a_setting_before_any_section_is_named(directory: Path, options: list[str]) -> None:
    line = refusal(directory, "log_level = info\n", *options)
    assert f"{directory}/postern.conf:1:" in line and "log_level" in line


@BOTH
def test_a_file_without_a_profile_is_refused(directory: Path, options: list[str]) -> None:
    for text in ("", "# nothing\n", "[broker]\nlog_level = info\n"):
        assert "[profile" in refusal(directory, text, *options)


@BOTH
def test_a_file_that_cannot_be_read_is_named(directory: Path, options: list[str]) -> None:
    file = directory / "postern.conf"
    assert f"{file}: No such file" in refusal(directory, None, *options)
    file.mkdir()
    assert str(file) in refusal(directory, None, *options)
    file.rmdir()
    file.write_text(changed(directory, {}))
    file.chmod(0)
    assert f"{file}: Permission denied" in refusal(directory, None, *options, prefix=as_a_user())
    file.unlink()
    os.mkfifo(file)  # must not be waited for
    assert str(file) in refusal(directory, None, *options)


@BOTH
def test_a_file_too_large_to_be_one_is_refused(directory: Path, options: list[str]) -> None:
    text = "# filler\n" * 200_000
    assert f"{directory}/postern.conf" in refusal(directory, text, *options)


def test_a_port_in_use_is_named(directory: Path) -> None:
    """devops-bench#183 among others: said by the broker, not found out by its clients."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        line = refusal(directory, changed(directory, profile(listen=listen)))
    assert listen in line and "in use" in line and "vertex" in line


def test_an_address_that_the_host_has_not_yet_is_named_and_waited_for(directory: Path) -> None:
    """A bridge may be made after the broker starts."""
    with Broker(directory, profiles={"vertex": {"listen": "198.51.100.254:0"}}) as running:
        assert "profile vertex: this host has no address 198.51.100.254 yet" in running.log


def test_an_audit_trail_that_cannot_be_written_is_named(directory: Path) -> None:
    place = f"{directory}/missing/audit.jsonl"
    line = refusal(directory, changed(directory, broker(audit_log=place)))
    assert place in line and "audit_log" in line


def test_a_ca_file_that_is_not_there_is_named(directory: Path) -> None:
    line = refusal(directory, changed(directory, {"endpoints": {"ca_file": "/nonexistent/ca.pem"}}))
    assert "/nonexistent/ca.pem" in line and "ca_file" in line
