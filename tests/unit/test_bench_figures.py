# SPDX-License-Identifier: Apache-2.0
"""What scripts/bench makes of what it measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import load, peers, report
from tests.bench.bench import Bench, Scenario
from tests.bench.figures import Check, Result, Samples, in_turn

WRK = """Running 1s test @ http://127.0.0.1:1/
  1 threads and 1 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.57ms    1.21ms  12.86ms   80.03%
  Latency Distribution
     50%  970.00us
     75%    2.03ms
     90%    3.20ms
     99%    1.21s
  20418 requests in 1.02s, 7.11MB read
Requests/sec:  20017.64
Transfer/sec:      6.97MB
"""


def test_a_ratio_is_taken_round_by_round() -> None:
    """A machine that slows down in the second round slows both."""
    ours, theirs = Samples.of([100, 50, 90]), Samples.of([50, 25, 60])
    assert ours.over(theirs).values == (2, 2, 1.5)
    with pytest.raises(ValueError):
        ours.over(Samples.of([1]))


def test_a_percentile_is_the_smallest_sample_that_the_share_does_not_exceed() -> None:
    samples = Samples.of(range(1, 101))
    assert [samples.percentile(share) for share in (0.5, 0.99, 1.0)] == [50, 99, 100]
    assert Samples.of([7]).percentile(0.01) == 7


def test_a_figure_shows_its_spread_where_it_has_one() -> None:
    assert Samples.of([1234.56]).text(1) == "1,234.6"
    assert Samples.of([3, 1, 2]).text() == "2 (1 to 3)"


def test_rounds_are_in_turn() -> None:
    assert [name for _, name in in_turn("AB", 2)] == ["A", "B", "A", "B"]


@pytest.mark.parametrize("value, at_least, holds", [
    (0.9, True, True), (0.89, True, False), (0.9, False, True), (0.91, False, False)])
def test_a_bound_itself_holds(value: float, at_least: bool, holds: bool) -> None:
    assert Check("x", value, 0.9, at_least=at_least).holds is holds


def test_a_report_of_wrk_is_read() -> None:
    assert load.parse_wrk(WRK) == load.Load(20017.64, 20418, 970.0, 1.21e6)
    errors = "  Socket errors: connect 1, read 20, write 0, timeout 300\n"
    assert load.parse_wrk(WRK.replace("Requests", errors + "Requests")).errors == 321


@pytest.mark.parametrize("said", [
    "", WRK.replace("Requests/sec", "x"), WRK.replace("99%", "98%"),
    WRK.replace("Requests", "  Non-2xx or 3xx responses: 1\nRequests")])
def test_a_report_that_says_nothing_good_is_refused(said: str) -> None:
    with pytest.raises(load.Wrong):
        load.parse_wrk(said)


def test_a_given_peer_gets_its_port_and_directory() -> None:
    peer = peers.given("mine=sh -c 'serve {port}' {directory}/x")
    assert (peer.name, peer.missing) == ("mine", None)
    assert peer.start(Path("/d"), 7).command == ["sh", "-c", "serve 7", "/d/x"]
    assert peers.given("mine=no-such-program {port}").missing == "there is no no-such-program"


@pytest.mark.parametrize("text", ["", "mine", "mine=", "=serve {port}", "mine=serve"])
def test_a_peer_without_a_name_or_a_port_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        peers.given(text)


def test_the_page_names_what_does_not_hold_and_who_is_absent() -> None:
    result = Result()
    result.table("A table", "a", "b").add("1", "2")
    result.check("speed", 0.5, at_least=0.9)
    result.check("size", 1, at_most=2, unit="KiB", digits=0)
    scenario = Scenario("one", "One thing", "How it is measured.", lambda bench: result)
    page = report.page(Bench(Path("/"), [], 5, 1.0), [peers.given("mine=no-such-program {port}")],
                       {scenario: result})
    assert "| speed | at least 0.9 | 0.50 | **no** |" in page
    assert "| size | at most 2 KiB | 1 KiB | yes |" in page
    assert "not measured: there is no no-such-program" in page
    assert "## One thing\n\nHow it is measured.\n\nA table:\n\n| a | b |\n| --- | --- |\n| 1 | 2 |" in page
    assert [check.what for check in report.failures([result])] == ["speed"]
