# SPDX-License-Identifier: Apache-2.0
"""Who may speak to a standing endpoint."""

from __future__ import annotations

import pytest

from .conftest import Starter
from .deadline import eventually
from .http1 import TOKEN

ELSEWHERE = "198.51.100.0/24"


def test_a_peer_outside_the_list_gets_nothing(start: Starter) -> None:
    broker = start(profiles={"vertex": {"allow_peers": ELSEWHERE}})
    for target in ("/", TOKEN, "/unknown", "/computeMetadata/v1/project/project-id"):
        for how in ({}, {"flavor": False}, {"host": "evil.example"}, {"method": "POST"}):
            reply = broker.get(target, **how)
            assert (reply.status, reply.text) == (403, "Forbidden.\n")
            assert reply.header("Metadata-Flavor") == "Google"


def test_refusals_of_a_peer_are_audited_once_and_then_counted(start: Starter) -> None:
    """At most a line a second, whatever it sends; and no refusal is lost."""
    broker = start(broker={"endpoint_rate": 0}, profiles={"vertex": {"allow_peers": ELSEWHERE}})
    assert broker.get("/").status == 403
    first = broker.wait_for_audit("request.refuse", reason="peer", peer="127.0.0.1")
    assert (first["count"], first["status"], first["profile"]) == (1, 403, "vertex")
    with broker.client() as client:
        for _ in range(200):
            assert client.ask(TOKEN).status == 403

    def counted() -> int:
        return sum(line["count"] for line in broker.audit_of("request.refuse", reason="peer"))
    eventually("all refusals counted", lambda: counted() == 201)
    assert len(broker.audit_of("request.refuse")) <= 4


def test_refusals_not_written_yet_are_written_at_the_end(start: Starter) -> None:
    broker = start(profiles={"vertex": {"allow_peers": ELSEWHERE}})
    for _ in range(3):
        assert broker.get("/").status == 403
    assert broker.stop() == 0
    assert sum(line["count"] for line in broker.audit_of("request.refuse")) == 3


def test_peers_are_told_apart(start: Starter) -> None:
    broker = start(profiles={"vertex": {"allow_peers": "127.0.0.2/32, 127.0.1.0/24"}})
    for source, status in (("127.0.0.1", 403), ("127.0.0.2", 200), ("127.0.0.3", 403),
                           ("127.0.1.200", 200), ("127.0.2.1", 403)):
        assert broker.get("/", source=source).status == status, source
    refused = {line["peer"] for line in broker.audit_of("request.refuse")}
    assert refused == {"127.0.0.1", "127.0.0.3", "127.0.2.1"}


def test_loopback_serves_loopback_and_says_so(start: Starter) -> None:
    broker = start()
    assert "loopback" in broker.log
    for source in ("127.0.0.1", "127.0.0.2", "127.255.0.1"):
        assert broker.get("/", source=source).status == 200


def test_a_wildcard_that_is_allowed_still_wants_a_bridge(start: Starter) -> None:
    """`auto` off loopback: subnets of bridges, without the host's own addresses."""
    broker = start(broker={"allow_wildcard_listen": "yes"},
                   profiles={"vertex": {"listen": "0.0.0.0:0"}})
    _, port = broker.address()
    broker.endpoints["vertex"] = ("127.0.0.1", port)
    assert broker.token().status == 403
    assert broker.get("/", host="127.0.0.1").status == 403


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.9"])
def test_behind_a_wildcard_the_host_is_the_address_that_was_spoken_to(start: Starter,
                                                                     address: str) -> None:
    broker = start(broker={"allow_wildcard_listen": "yes"},
                   profiles={"vertex": {"listen": "0.0.0.0:0", "allow_peers": "127.0.0.0/8"}})
    _, port = broker.address()
    broker.endpoints["vertex"] = (address, port)
    assert broker.get("/", host=f"{address}:{port}").status == 200
    assert broker.get("/", host="127.0.0.77").status == 403
    assert broker.get("/", host="0.0.0.0").status == 403
