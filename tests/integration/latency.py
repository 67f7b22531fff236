# SPDX-License-Identifier: Apache-2.0
"""How long answers take, told apart from how busy the machine is."""

from __future__ import annotations

import math
import time

from .deadline import FACTOR
from .http1 import Address, Client, request

BOUND_MS = 5.0
# More than a scheduler's whim: somebody waited for something.
STALL_MS = 400.0
ROUNDS = 5


def percentile(samples: list[float], share: float) -> float:
    """The smallest sample that so large a share does not exceed."""
    return sorted(samples)[max(0, math.ceil(len(samples) * share) - 1)]


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
    """`/` is answered within the bound, 99 of 100, in one of a few rounds; and no answer of any
    round waits for something. Gives the good round."""
    said = []
    for _ in range(ROUNDS):
        samples = sample(address, count)
        said.append(", ".join(f"p{share * 100:g}={percentile(samples, share):.2f} ms"
                              for share in (0.5, 0.95, 0.99, 1)))
        assert max(samples) < STALL_MS * FACTOR, said
        if percentile(samples, 0.99) <= bound_ms * FACTOR:
            return samples
    raise AssertionError(f"above {bound_ms * FACTOR} ms: {said}")
