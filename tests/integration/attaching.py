# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of the attach socket: a sandbox, and a broker that no door may harm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .broker import Broker
from .doors import Sandbox, attached, flat_descriptors


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """One."""
    with Sandbox() as made:
        yield made


@pytest.fixture
def unharmed(offline: Broker, sandbox: Sandbox) -> Iterator[None]:
    """Whatever was tried: no descriptor is left, and the next door is served."""
    with flat_descriptors(offline):
        yield
    with attached(offline, sandbox):
        assert sandbox.ask().token
