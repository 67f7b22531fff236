# SPDX-License-Identifier: Apache-2.0
"""The reference pages against the tables of the code."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def keys_of_the_code() -> set[str]:
    text = (ROOT / "broker/config_keys.c").read_text()
    return set(re.findall(r"^\tKEY(?:_AS)?\((\w+),", text, re.M))


def keys_of_the_page() -> set[str]:
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs/configuration.md").read_text(), re.M)
    return {key for row in rows for key in re.findall(r"`(\w+)`", row)}


def test_the_page_of_the_configuration_names_every_key_and_no_other() -> None:
    keys = keys_of_the_code()
    assert len(keys) > 30
    assert keys_of_the_page() == keys

