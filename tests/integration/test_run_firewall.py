# SPDX-License-Identifier: Apache-2.0
"""A sandbox starts where the host's rules keep it from the metadata server, or where somebody says so."""

from __future__ import annotations

import subprocess

from .broker import ROOT
from .engine import PATH, Engine
from .launch import Place

SCRIPT = ROOT / "scripts" / "host-firewall"


def host_firewall(engine: Engine, *args: str) -> None:
    """In the engine's namespace."""
    subprocess.run([*engine.namespace.prefix, SCRIPT, *args], env={"PATH": PATH}, check=True,
                   capture_output=True, stdin=subprocess.DEVNULL)


def test_without_rules_nothing_starts(place: Place) -> None:
    ran = place.run("true", verified_firewall=True)
    assert ran.status == 5
    assert "host-firewall" in ran.err and "--allow-unverified-firewall" in ran.err
    assert not place.broker.audit_of("session.open")


def test_with_rules_a_sandbox_starts(place: Place) -> None:
    gateway = place.engine.gateway()
    host_firewall(place.engine, "install", "--no-timer", "--endpoint", gateway)
    try:
        assert place.run("true", verified_firewall=True).status == 0
    finally:
        host_firewall(place.engine, "remove", "--no-timer")
