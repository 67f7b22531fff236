# SPDX-License-Identifier: Apache-2.0
"""Configuration files from dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.google.standin import ACCOUNT, PROJECT, Standin

Section = Mapping[str, Any]
Sections = Mapping[str, Section]

# A profile as most tests want it: on a port that the kernel chooses.
PROFILE: Section = {"service_account": ACCOUNT, "project": PROJECT, "listen": "127.0.0.1:0"}


def render(sections: Sections) -> str:
    """The text of a file; a key whose value is None is left out."""
    lines = []
    for name, section in sections.items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {value}" for key, value in section.items() if value is not None]
        lines.append("")
    return "\n".join(lines)


def endpoints_of(google: Standin) -> Section:
    """Everything that is Google's, at the stand-in: an address for each API."""
    return {name: google.url_of(name) for name in ("iamcredentials", "oauth2", "sts", "iam")} | {
        "ca_file": google.ca_file}


def sections(directory: Path, google: Standin | None, *, broker: Section | None = None,
             source: Section | None = None, endpoints: Section | None = None,
             profiles: Sections | None = None) -> dict[str, dict[str, Any]]:
    """A whole configuration: what is given laid over what a test broker needs.

    With a stand-in the source is its login, without one it is offline. Each profile is laid over
    `PROFILE`; without any there is one, `vertex`.
    """
    made: dict[str, dict[str, Any]] = {
        "broker": {"control_socket": directory / "control.sock",
                   "audit_log": directory / "audit.jsonl", "log_level": "debug",
                   **(broker or {})},
    }
    if source is not None:
        made["source"] = dict(source)
    elif google is None:
        made["source"] = {"type": "offline"}
    else:
        made["source"] = {"type": "file", "file": google.write_adc()}
    made["endpoints"] = {**(endpoints_of(google) if google else {}), **(endpoints or {})}
    for name, settings in (profiles or {"vertex": {}}).items():
        made[f"profile {name}"] = {**PROFILE, **settings}
    return made
