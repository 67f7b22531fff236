# SPDX-License-Identifier: Apache-2.0
"""How long answers take, told apart from how busy the machine is."""

from __future__ import annotations

import time

from .deadline import FACTOR
from .http1 import Address, Client, request

BOUND_MS = 5.0
# More than any scheduler's whim: somebody waited for something.
STALL_MS = 400.0
ROUNDS = 5


def percentile(samples: list[float], share: float) -> float:
    """The smallest sample that so large a share does not exceed."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def sample(address: Address, count: int) -> list[float]:
    """Milliseconds of so many `GET /`, half on one connection and half on new ones."""
    whole = request("/")
    samples = []
    with Client(address) as kept:
        for number in range(count):
            client = kept if number % 2 else Client(address)
            begun = time.perf_counter()
            client.send(whole)
            status = client.read().status
            samples.append((time.perf_counter() - begun) * 1000)
            assert status == 200
            if client is not kept:
                client.close()
    return samples


def assert_quick(address: Address, count: int, bound_ms: float = BOUND_MS) -> list[float]:
    """`/` is answered within the bound: the median and 99 of 100, in one of a few rounds, and no
    answer of any round waits for something. Gives the good round."""
    said = []
    for _ in range(ROUNDS):
        samples = sample(address, count)
        p50, p99, worst = percentile(samples, 0.5), percentile(samples, 0.99), max(samples)
        said.append(f"p50={p50:.2f} p99={p99:.2f} max={worst:.2f} ms")
        assert worst < STALL_MS * FACTOR, said
        if p99 <= bound_ms * FACTOR:
            return samples
    raise AssertionError(f"above {bound_ms * FACTOR} ms: {said}")
