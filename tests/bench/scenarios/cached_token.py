# SPDX-License-Identifier: Apache-2.0
"""A token from the cache, beside every peer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .. import load, machine
from ..bench import Bench, Scenario
from ..figures import Result, Samples, Table, in_turn
from ..peers import TOKEN_TEXT, Peer, Running

POSTERN = "Postern"
NGINX = "nginx"
ORIGIN = "origin"
KEPT_CONNECTIONS = (1, 32, 256)
NEW_CONNECTIONS = 32
# Those of issue 7.
LEAST_RATE = 0.9
MOST_LATENCY = 1.2
LEAST_OVER_ORIGIN = 40.0
AHEAD = 1.0
# A round of it takes a second or two more than its load.
COLUMNS = ("connections", "server", "answers/s", "beside nginx", "p50 µs", "p99 µs", "CPU µs an answer")


@dataclass(frozen=True)
class Measured:
    """One server at one number of connections, once a round."""

    loads: Sequence[load.Load]
    cpu_us: Samples

    def of(self, figure: str) -> Samples:
        """One figure of each load."""
        return Samples.of(getattr(each, figure) for each in self.loads)


@contextlib.contextmanager
def servers(bench: Bench) -> Iterator[list[Running]]:
    """Postern with a token in its cache, then the peers."""
    with contextlib.ExitStack() as stack:
        google = stack.enter_context(bench.google())
        google.always("generateAccessToken", {"token_bytes": len(TOKEN_TEXT)})
        broker = stack.enter_context(bench.broker(google))
        if broker.token().status != 200:
            raise load.Wrong("Postern gives no token")
        found = [Running(POSTERN, broker.address(), broker.pid)]
        for peer in bench.peers:
            found.append(stack.enter_context(
                peer.running(stack.enter_context(bench.directory()))))
        yield found


def measure(bench: Bench, running: Sequence[Running], connections: int, *,
            close: bool = False) -> dict[str, Measured]:
    """Every server in turn."""
    loads: dict[str, list[load.Load]] = {each.name: [] for each in running}
    costs: dict[str, list[float]] = {each.name: [] for each in running}
    for _, each in in_turn(running, bench.rounds):
        before = machine.cpu_ns(each.pid)
        made = load.wrk(each.address, connections, bench.seconds, close=close)
        costs[each.name].append((machine.cpu_ns(each.pid) - before) / 1000 / made.answers)
        loads[each.name].append(made)
    if any(made.errors for made in loads[POSTERN]):
        raise load.Wrong("Postern broke connections off")
    return {name: Measured(loads[name], Samples.of(costs[name])) for name in loads}


def tabulate(result: Result, table: Table, connections: int,
             measured: Mapping[str, Measured]) -> None:
    """One row a server."""
    for name, each in measured.items():
        beside = each.of("rate").over(measured[NGINX].of("rate")).text(2) \
            if NGINX in measured else "-"
        errors = sum(made.errors for made in each.loads)
        if errors:
            result.note(f"{name} at {connections} connections: {errors} connections refused or "
                        "broken off.")
        table.add(str(connections), name, each.of("rate").text(), beside,
                  each.of("p50_us").text(), each.of("p99_us").text(), each.cpu_us.text(1))


def judge(result: Result, peers: Sequence[Peer], connections: int,
          measured: Mapping[str, Measured]) -> None:
    """What issue 7 demands."""
    ours = measured[POSTERN]
    if NGINX in measured and connections <= 32:
        limit = measured[NGINX]
        result.check(f"rate at {connections} connections, of nginx's",
                     ours.of("rate").over(limit.of("rate")).median, at_least=LEAST_RATE)
        result.check(f"median latency at {connections} connections, of nginx's",
                     ours.of("p50_us").over(limit.of("p50_us")).median, at_most=MOST_LATENCY)
    for peer in peers:
        if not peer.constant:
            result.check(f"rate at {connections} connections, of {peer.name}'s",
                         ours.of("rate").over(measured[peer.name].of("rate")).median,
                         at_least=LEAST_OVER_ORIGIN if peer.name == ORIGIN and connections <= 32
                         else AHEAD)


def run_kept(bench: Bench) -> Result:
    """Connections that are kept."""
    result = Result()
    table = result.table("Answers with a token from the cache, connections kept", *COLUMNS)
    with servers(bench) as running:
        for connections in KEPT_CONNECTIONS:
            measured = measure(bench, running, connections)
            tabulate(result, table, connections, measured)
            judge(result, bench.peers, connections, measured)
    return result


def run_new(bench: Bench) -> Result:
    """A connection for each request, which the server closes."""
    result = Result()
    table = result.table("Answers with a token from the cache, a connection for each", *COLUMNS)
    with servers(bench) as running:
        tabulate(result, table, NEW_CONNECTIONS,
                 measure(bench, running, NEW_CONNECTIONS, close=True))
    return result


KEPT = Scenario(
    "cached-token", "A cached token",
    "wrk with one thread asks every server in turn; the connections are kept. The ratio is taken round by "
    "round.", run_kept)
NEW = Scenario(
    "new-connection", "A cached token, a new connection each",
    "wrk with `Connection: close` at 32 connections, every server in turn.", run_new)
