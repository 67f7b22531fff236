# SPDX-License-Identifier: Apache-2.0
"""An endpoint inside the sandbox: what a container of a real engine gets there, and what it loses."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest

from .engine import IMAGE
from .launch import Place

ADDRESS = "169.254.169.254"
PATH = "/computeMetadata/v1/instance/service-accounts/default/token"
ASK = f'curl -s -m 10 -H "Metadata-Flavor: Google" http://{ADDRESS}{PATH}'
ASK_BY_NAME = ASK.replace(ADDRESS, "metadata.google.internal")


def test_a_token_comes_without_a_network_a_capability_or_a_variable(inside: Place) -> None:
    """As issue 6 has it: curl, to the address and to the name."""
    for ask in (ASK, ASK_BY_NAME):
        ran = inside.sh(f"env -i /usr/bin/{ask} && id -u >&2 && grep CapEff /proc/self/status >&2",
                        options=["--network", "none", "--engine-arg", "--read-only=true"])
        info = inside.google.token_info(ran.token)
        assert info is not None and info.minted
        assert ran.err.split() == ["1000", "CapEff:", "0" * 16]
    assert inside.is_clean()
