# SPDX-License-Identifier: Apache-2.0
"""What a client is known to do. Each client's folder has its own in its facts.py."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
NEVER = float("inf")


@dataclass(frozen=True)
class Facts:
    """One client. The tests hold it, and the broker, to this; the report is made of it."""

    command: tuple[str, ...]  # {cache}: where it is installed, {here}: its folder
    start: int  # metadata requests before the first token, once a process
    per_token: int  # metadata requests for one token, the token's own among them
    tries: int  # token requests while the answer is 503; 0: it goes on for minutes
    least: tuple[str, ...]  # the variables without which it finds no endpoint
    margin_s: float = NEVER  # a token with so little left is asked for again
    shares: bool = False  # calls at the same time share one token request
    identity: bool = False  # has a call that asks for an ID token
    streams: bool = False
    # of the application, beside those of the endpoint
    application: Mapping[str, str] = field(default_factory=dict)

    refused: int = 0  # of the requests before the first token, those that are answered 404

    # for the report and the installer
    title: str = ""  # as its users call it
    role: str = "sdk"  # sdk, tool or agent; inside: reads no variable
    package: str = ""  # whose version the lock file has
    version: tuple[str, ...] = ()  # where no lock file is: the command that tells it
    needs: Mapping[str, str] = field(default_factory=dict)  # toolchain program: least version
    where_installed: str = ""  # a program that nothing here brings: without it the client is absent
    must_set: str = ""  # by the user, beside the variables of the endpoint
    cannot: str = ""  # what does not work with it, and why

    address: str = ""  # HOST:PORT that is built in: the endpoint is there, whatever the variables say

    # what else can be asked of its program, and how it differs from the others
    project: bool = False  # `project`: the project that it learns from the endpoint
    foreign: bool = False  # `foreign`: a token of an account that is not the sandbox's
    proxied: bool = True  # asks a proxy for the endpoint where NO_PROXY does not name it
    tells: bool = True  # shows its user what the endpoint says of a refusal
    denied: int = 1  # token requests while the answer is 403
    renews_aside: bool = False  # near its end it uses the token it has while it asks for the next
    hasty: bool = False  # may have made its last try before the broker has made its second
    pause_s: float = 0  # after a failure it asks no more for so long, and each call fails meanwhile
    again_at_once: bool = False  # asks for a token near its end again before it uses it
    remembers_absence: bool = False  # no endpoint at its first look: none for the process's life
    # Another client, whose library takes the tokens for this one: what is that library's own doing,
    # such as how it tries again, is tested there.
    auth_of: str = ""
    slow: bool = False  # seconds a call: not each test that finds out nothing new with it
    at_once: int = 50  # calls at the same time

    @property
    def thorough(self) -> bool:
        """Whether every test is run with it."""
        return not self.auth_of and not self.slow

    @property
    def caches(self) -> bool:
        """Whether it keeps a token from one call to the next."""
        return self.margin_s != NEVER


@dataclass(frozen=True, kw_only=True)
class AgentFacts(Facts):
    """One agent: `command` and a prompt are a turn. `{google}` in `application` is the stand-in."""

    preset: str  # of the launcher
    reads: tuple[str, str]  # its tool that reads a file, and the argument that names the file
    renews: bool = True  # within a turn it asks again for a token that is about to end
    gone: str = "ECONNREFUSED|Unable to connect"  # what it says of an endpoint that is not there
    persists: bool = False  # and then goes on for minutes


def all_names() -> list[str]:
    """All clients, by folder."""
    return sorted(path.parent.name for path in HERE.glob("*/facts.py"))


def names() -> list[str]:
    """Those that a variable leads to the endpoint; the others are for test_inside.py."""
    return [name for name in all_names() if of(name).role != "inside"]


def of(name: str) -> Facts:
    """The facts of one."""
    facts: Facts = importlib.import_module(f".{name}.facts", __package__).FACTS
    return facts


def of_agent(name: str) -> AgentFacts:
    """The same of an agent."""
    known = of(name)
    assert isinstance(known, AgentFacts), name
    return known


def main() -> None:
    """For scripts/clients: NAME, ROLE, the program it may lack, PROGRAM=VERSION...; a line each."""
    for name in all_names():
        known = of(name)
        needs = (f"{program}={least}" for program, least in known.needs.items())
        sys.stdout.write(" ".join([name, known.role, known.where_installed or "-", *needs]) + "\n")


if __name__ == "__main__":
    main()
