# SPDX-License-Identifier: Apache-2.0
"""Writes docs/compatibility.md from the facts and each client's last run: `python3 -m tests.clients.report FILE`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from . import facts, results
from .facts import Facts
from .known_requests import REFUSED, SERVED
from .results import Result
from .test_zy_closed_table import template

HEADINGS = {"sdk": "Libraries", "tool": "Tools", "agent": "Agents"}
VARIABLES = {"GCE_METADATA_HOST": "H", "GCE_METADATA_IP": "I", "GCE_METADATA_ROOT": "R"}
ACCOUNT = "agent@my-project.iam.gserviceaccount.com"

HEAD = """\
# Compatibility

What a client needs to find Postern's endpoint, and what it makes of the answers. `scripts/clients report` wrote the tables
of this page from the last `scripts/clients test`: real, pinned clients against `posternd`, with no route out of the machine.
What is said to be *read* is from a client's source and was not run.

H, I and R are `GCE_METADATA_HOST`, `GCE_METADATA_IP` and `GCE_METADATA_ROOT`. Set all the variables of the
[README](../README.md#set-up-a-bastion): together they serve every client below. Each library prefers
`GOOGLE_APPLICATION_CREDENTIALS` and an `application_default_credentials.json` to the endpoint (read): leave them out.
"""

NOTES = """\
## The columns

* *Needs at least*: the variables without which it finds no endpoint, beside those in *also set*.
  With H alone Python's google-auth pings 169.254.169.254, asks the endpoint nothing and finds no credentials after 3 s.
* *For a token*: requests before the first one, and for each. *Asks again*: with so little left of a token; one that asks
  *aside* uses the token that it has meanwhile.
* *403*: how often it asks when the broker may not have the token, and whether its user sees the reason, such as `the broker
  may not use this account (ref 5ad2b3fc)`. The Node libraries put a sentence about permission scopes before it, which does
  not apply.
* *503*: how often it asks while the broker cannot have the token. One that asks once shows its user each such failure.
* *Proxy*: whether it asks `HTTP_PROXY` for the endpoint where `NO_PROXY` does not name the endpoint's host. Node does not
  match an entry with a port or a CIDR (read).
* A dash was not run: such a client takes seconds a call, or its library is in a line of its own. *Tests* are those passed.

Each library and tool: one mint for the first call and for many at the same time, the next call from a token that is there, a
proxy that sees nothing; all but the tools of seconds a call: a token that ends, a failed mint and the next good one, a
broker that is killed and comes back. One that sits on another's library is tested for its own part.

Every agent: a turn in which it uses tools while the first mint fails and the next token ends; the next turn from the token
that there is; a broker that comes back between two turns; a proxy that sees no endpoint and refuses what the agent reports
of itself. Where its endpoint is gone there is no answer, and the machine's own metadata server is not asked.
"""

TAIL = """\
## Differences from the sources

What the run showed otherwise than reading had it:

* `cloud.google.com/go/auth` near a token's end gives the old token and asks aside, at any lifetime.
* google-cloud-auth for Rust asks no more for 10 s after a failure, and each call fails meanwhile; it goes on after that.
* `anthropic[vertex]` takes no project from the endpoint before its first call: `ANTHROPIC_VERTEX_PROJECT_ID` must be set.
* Whoever finds no endpoint at the first look: Java's library finds none until its process ends, gcloud for ten minutes;
  Node's google-auth-library and `golang.org/x/oauth2/google` have no project until the process ends. The others find it at
  the next call. Start the broker first.
* Debian 12's googleauth for Ruby reads no variable.

## Read

| client | needs | note |
| --- | --- | --- |
| .NET | H | first pings `http://H/`; its registry is not among those of this project's tests |
| C++ | R | |
| bq | R, I, H | seen: 2.1.18 |
| terraform-provider-google | as `golang.org/x/oauth2/google` | |
| antigravity | as Go | closed, and in no registry: only its preset's variables are tested |

## What cannot work

| what | why |
| --- | --- |
| PHP google/auth, Rust gcp_auth, by variables | they read none: the address is a constant (read); inside a sandbox they need none (gcp_auth tested) |
| ID tokens, so Envoy's gcp_authn too | the endpoint has no `identity` route (tested) |
| more scopes than the profile has | a token carries the profile's, whatever is asked |
| google-auth with an agent identity certificate | it asks by POST (read), and a request with a body is refused |
"""


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def times(count: int) -> str:
    """How often."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def again(known: Facts) -> str:
    """When it asks for the next token."""
    if not known.caches:
        return "each time"
    return f"at {known.margin_s:g} s left" + (", aside" if known.renews_aside else "")


def failing(known: Facts) -> str:
    """What it does while there is no token."""
    if not known.thorough:
        return "-"
    if not known.tries:
        return "for minutes"
    return times(known.tries) + (f", then not for {known.pause_s:g} s" if known.pause_s else "")


def proxied(known: Facts) -> str:
    """Whether it needs NO_PROXY."""
    if not known.proxied:
        return "no"
    return "yes" if known.thorough else "-"


def row(known: Facts, result: Result) -> list[str]:
    """A client's line in the table of its role."""
    least = ", ".join(VARIABLES.get(name, f"`{name}`") for name in known.least)
    return [
        known.title, result.version,
        least or f"{known.address}, built in", known.must_set,
        f"{known.start} + {known.per_token}" + (", shared" if known.shares else ""),
        again(known),
        times(known.denied) + ("" if known.tells else ", not shown"),
        failing(known),
        proxied(known),
        str(len(result.passed)),
    ]


def of_role(role: str, clients: dict[str, Result]) -> str:
    """The table of a role, and what its clients cannot do."""
    here = {name: facts.of(name) for name in facts.names() if facts.of(name).role == role}
    if not here:
        return ""
    told = {name: known for name, known in here.items() if name in clients}
    text = f"## {HEADINGS[role]}\n\n" + table(
        ("client", "version", "needs at least", "also set", "for a token", "asks again", "403", "503", "proxy",
         "tests"), (row(known, clients[name]) for name, known in told.items()))
    absent = [known.title for name, known in here.items() if name not in told]
    if absent:
        text += f"\nTested where it is installed, and not in this run: {', '.join(absent)}.\n"
    notes = [f"* {known.title}: {known.cannot}.\n" for known in told.values() if known.cannot]
    return text + ("\n" + "".join(notes) if notes else "") + "\n"


def requests(clients: dict[str, Result]) -> str:
    """Which clients asked for what."""
    asked: dict[str, list[str]] = {}
    for name, result in clients.items():
        for path in result.asked:
            asked.setdefault(template(path, {"default", ACCOUNT}), []).append(facts.of(name).title)
    rows = [(f"`{path}`", "200" if path in SERVED else "404: " + REFUSED[path][0],
             "; ".join(sorted(set(asked[path]))))
            for path in (*SERVED, *REFUSED) if path in asked]
    return ("## What they ask\n\nA request that is in neither of the tables of `tests/clients/known_requests.py` fails "
            "the run, so that the next version of a client shows what it changed.\n\n"
            + table(("path", "answer", "asked by"), rows) + "\n")


def page(clients: dict[str, Result]) -> str:
    """The whole page."""
    clients = {name: result for name, result in clients.items() if name in facts.names()}
    missing = [name for name in facts.names()
               if name not in clients and not facts.of(name).where_installed]
    failed = [f"{name}: {test}" for name, result in clients.items() for test in result.failed]
    if missing or failed:
        sys.exit("clients: no report: the last run " + "; ".join(
            [f"lacks {name}" for name in missing] + [f"failed {test}" for test in failed])
            + "; run scripts/clients test")
    tables = "".join(of_role(role, clients) for role in HEADINGS)
    return "\n".join((HEAD, tables + NOTES, requests(clients) + TAIL))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(results.read()), encoding="utf-8")
