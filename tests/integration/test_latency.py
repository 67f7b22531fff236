# SPDX-License-Identifier: Apache-2.0
"""No route but `token` ever waits for anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.google.standin import Standin

from .broker import ROOT
from .conftest import Starter
from .deadline import FACTOR, allowed
from .http1 import TOKEN, request
from .latency import assert_quick, percentile

pytestmark = pytest.mark.real_time

MINT = "generateAccessToken"
OPEN = {"endpoint_rate": 0}


def in_namespaces(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a command with a network and mounts of its own; root needs no user namespace for it."""
    unshare = ["unshare", "--net", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    return subprocess.run([*unshare, *command], cwd=ROOT, capture_output=True, text=True,
                          timeout=allowed(90), check=False, stdin=subprocess.DEVNULL)


def test_a_resolver_that_never_answers_holds_up_nobody(directory: Path, google: Standin) -> None:
    done = in_namespaces(sys.executable, "-m", "tests.integration.silent_resolver", directory,
                         google.write_adc())
    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads(done.stdout)
    print(said)
    assert len(said["statuses"]) >= 4 and set(said["statuses"]) == {503}
    assert said["count"] >= 1000 and said["p50_ms"] < 5 * FACTOR
    assert said["threads"] <= 2  # one more for a look-up, which is libcurl's
    assert said["exit"] == 0 and said["stop_s"] < 6 * FACTOR


def test_the_table_is_served_while_tokens_wait(start: Starter, google: Standin) -> None:
    """google-api-dotnet-client#1169: detection that times out under load; istio#48304."""
    broker = start(google, broker=OPEN)
    google.hold(MINT)
    clients = [broker.client() for _ in range(40)]
    try:
        for client in clients:
            client.send(request(TOKEN))
        google.wait_for(MINT)
        samples = assert_quick(broker.address(), 300)
        print(f"p50={percentile(samples, 0.5):.2f} p99={percentile(samples, 0.99):.2f} ms")
        google.release(MINT)
        assert all(client.read().token for client in clients)
    finally:
        for client in clients:
            client.close()


def test_a_cached_token_is_as_quick(start: Starter, google: Standin) -> None:
    broker = start(google, broker=OPEN)
    assert broker.token().token
    whole = request(TOKEN)
    with broker.client() as client:
        samples = []
        for _ in range(300):
            begun = time.perf_counter()
            client.send(whole)
            assert client.read().token
            samples.append((time.perf_counter() - begun) * 1000)
    assert percentile(samples, 0.5) < 5 * FACTOR
