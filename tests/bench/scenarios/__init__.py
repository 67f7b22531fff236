# SPDX-License-Identifier: Apache-2.0
"""What is measured, in the order of the report."""

from __future__ import annotations

from ..bench import Scenario
from . import cached_token, cold_start, control_flood, crowd, instructions, launcher, memory, refresh, sessions

ALL: dict[str, Scenario] = {each.name: each for each in (
    cached_token.KEPT, cached_token.NEW, instructions.SCENARIO, cold_start.SCENARIO, crowd.SCENARIO,
    refresh.SCENARIO, sessions.OPEN_AND_END, sessions.MANY, control_flood.SCENARIO, memory.SCENARIO,
    launcher.SCENARIO)}
