# SPDX-License-Identifier: Apache-2.0
"""What posternd takes and says on its command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.google.standin import ACCOUNT, PROJECT, Standin

from .broker import Broker, run
from .conftest import Starter
from .http1 import ACCOUNTS

PROFILE = ["--service-account", ACCOUNT, "--project", PROJECT]
OFFLINE = [*PROFILE, "--source", "offline"]


def usage(directory: Path, *args: str | Path) -> str:
    """The one line of a command line that is refused."""
    done = run(*args, home=directory)
    assert (done.returncode, done.stdout) == (2, ""), done
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: "), done.stderr
    return lines[0]


def test_version(directory: Path) -> None:
    for args in (["--version"], ["--version", "--config", "/nonexistent"], [*PROFILE, "--version"]):
        done = run(*args, home=directory)
        assert (done.returncode, done.stderr) == (0, "")
        assert re.fullmatch(r"posternd \d+\.\d+\.\d+\S*\n", done.stdout)


def test_help_names_every_option(directory: Path) -> None:
    done = run("--help", home=directory)
    assert (done.returncode, done.stderr) == (0, "")
    for option in ("--config FILE", "--check-config", "--service-account SA", "--project P",
                   "--listen ADDR:PORT", "--source TYPE[:FILE]", "--lifetime D", "--control PATH",
                   "--allow-wildcard-listen", "--ca-file FILE", "--version", "--help"):
        assert option in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


@pytest.mark.parametrize("args, holds", [
    (["--colour"], ["--colour", "--help"]),
    (["-x"], ["-x", "--help"]),
    (["extra"], ["extra", "--help"]),
    ([*OFFLINE, "extra"], ["extra"]),
    (["--config"], ["--config", "FILE"]),
    (["--check-config=yes"], ["--check-config"]),
    ([*OFFLINE, "--project", "again"], ["--project", "twice"]),
    (["--project", PROJECT], ["--project", "--service-account"]),
    (["--service-account", ACCOUNT], ["--service-account", "--project"]),
    (["--control", "x"], ["--control", "--config"]),
    (["--config", "x", *OFFLINE], ["--config", "--service-account"]),
    (["--config", "x", "--lifetime", "1h"], ["--config", "--lifetime"]),
    ([*OFFLINE, "--lifetime", "5"], ["--lifetime", '"5"', "5m to 12h"]),
    ([*OFFLINE, "--listen", "0.0.0.0:0"], ["--listen", "--allow-wildcard-listen"]),
    ([*OFFLINE, "--listen", "here"], ["--listen", "ADDRESS:PORT"]),
    ([*PROFILE, "--source", "aws"], ["--source", "aws"]),
    ([*PROFILE, "--source", "file"], ["--source", "file"]),
    ([*PROFILE, "--source", "file:"], ["--source"]),
    (["--service-account", "a/b@c.d", "--project", PROJECT], ["--service-account", "a/b@c.d"]),
    (["--service-account", "a\x1b[2J", "--project", PROJECT], ["--service-account", "\\x1b"]),
], ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else None)
def test_what_makes_no_sense_is_refused(directory: Path, args: list[str],
                                        holds: list[str]) -> None:
    line = usage(directory, *args)
    for each in holds:
        assert each in line, line
    assert "\x1b" not in line
    assert not (directory / "control.sock").exists()


def test_flags_make_a_profile(directory: Path, google: Standin) -> None:
    google.write_adc(directory.parent / "adc.json")
    try:
        with Broker(directory, google, args=[
                *PROFILE, "--source", "file:../adc.json", "--control", "control.sock",
                "--listen", "127.0.0.1:0", "--lifetime", "20m", "--ca-file", google.ca_file,
        ]) as broker:
            assert list(broker.endpoints) == ["default"]
            assert broker.control_path == f"{directory}/control.sock"
            profile = broker.status()["profiles"][0]
            assert (profile["name"], profile["service_account"], profile["project"]) == \
                ("default", ACCOUNT, PROJECT)
            assert broker.get(f"{ACCOUNTS}/default/email").text == ACCOUNT
            assert '"event":"broker.start"' in broker.log  # the audit trail's place then
    finally:
        (directory.parent / "adc.json").unlink()


def test_flags_without_listen_open_no_endpoint(directory: Path) -> None:
    with Broker(directory, args=[*OFFLINE, "--control", directory / "control.sock"]) as broker:
        assert broker.endpoints == {} and broker.status()["profiles"][0]["listen"] is None


def test_a_wildcard_may_be_allowed_by_a_flag(directory: Path) -> None:
    with Broker(directory, args=[*OFFLINE, "--control", "control.sock", "--listen", "0.0.0.0:0",
                                 "--allow-wildcard-listen"]) as broker:
        assert broker.address()[0] == "0.0.0.0"


def test_flags_are_checked_too(directory: Path) -> None:
    done = run(*OFFLINE, "--check-config", home=directory)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--lifetime" in usage(directory, *OFFLINE, "--check-config", "--lifetime", "1m")


def test_the_ready_line_names_every_endpoint(start: Starter) -> None:
    broker = start(profiles={"one": {}, "two": {"listen": "[::1]:0"}, "three": {"listen": None}})
    said = (broker.directory / "stdout").read_text()
    assert re.fullmatch(rf"ready control={broker.control_path} profile=one listen=127\.0\.0\.1:\d+ "
                        r"profile=two listen=\[::1\]:\d+\n", said)
    assert 0 not in {port for _, port in broker.endpoints.values()}


def test_a_margin_that_does_not_fit_the_lifetime_shrinks_and_says_so(start: Starter) -> None:
    broker = start(profiles={"vertex": {"lifetime": "10m"}})
    line = broker.wait_for_log(r"^warning: .*lifetime.*$")[0]
    assert "refresh_margin" in line and "200" in line and str(broker.config_file) in line
