# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the attacks on a sandbox with a door: what stands around it, for a module's tests together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .broker import Broker
from .conftest import new_directory
from .engine import Engine
from .launch import broker_in
from .outside import Outside


@pytest.fixture(scope="module")
def broker(engine: Engine, artifacts: Path, request: pytest.FixtureRequest) -> Iterator[Broker]:
    """One beside the engine, whose tokens no API accepts."""
    with broker_in(engine, new_directory(artifacts, request.node.nodeid), None) as running:
        yield running


@pytest.fixture(scope="module")
def outside(engine: Engine) -> Iterator[Outside]:
    """Where all that is forwarded arrives."""
    with Outside(engine) as made:
        yield made
