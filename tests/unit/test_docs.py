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



def rows_of(page: str, heading: str) -> list[tuple[str, set[str]]]:
    """First cell and names in the rest of each row of the table below a heading."""
    section = (ROOT / "docs" / page).read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([\w-]+)` \|(.*)\|$", section, re.M)
    return [(name, set(re.findall(r"`(\w+)`", rest))) for name, rest in rows]


def test_the_page_of_the_sandbox_names_the_presets_and_their_variables() -> None:
    text = (ROOT / "sandbox/plan/presets.c").read_text().split("preset table[] = {")[1].split("\n};")[0]
    entries = re.split(r'^\t\{"([\w-]+)",$', text, flags=re.M)[1:]
    presets = {name: set(re.findall(r'(?:PROJECT\(|LOCATION\(|\{)"(\w+)"', body))
               for name, body in zip(entries[::2], entries[1::2], strict=True)}
    assert len(presets) == 6
    assert dict(rows_of("sandbox.md", "Agents")) == presets


def test_the_page_of_the_sandbox_names_the_providers() -> None:
    text = (ROOT / "sandbox/plan/providers.c").read_text()
    names = re.findall(r'^\t(?:BY_KEY|BY_SESSION|WITHOUT_RECIPE)\("([\w-]+)"', text, re.M)
    assert len(names) == 6
    assert [name for name, _ in rows_of("sandbox.md", "Providers")] == names


def words_of_the_log() -> set[str]:
    """What may stand behind `reason=`, by the code: its own words, and those of Google that it knows."""
    places = [*(ROOT / "broker/credential").glob("*.c"), *(ROOT / "broker/google").glob("*.c"),
              ROOT / "broker/preflight.c"]
    return {word for path in places for word in re.findall(r'"([A-Za-z_]+)"', path.read_text())}


def test_the_page_of_the_sources_names_reasons_that_there_are() -> None:
    page = (ROOT / "docs/sources.md").read_text()
    cells = re.findall(r"^\| (`[^|]*) \|.*\|.*$", page, re.M)
    named = {word for cell in cells for quoted in re.findall(r"`([^`]+)`", cell)
             for word in re.findall(r"(?:^|reason=)([A-Za-z_]+)$", quoted)}
    assert len(named) > 25
    # Google's name for what is a 401 like any other here
    assert named - words_of_the_log() == {"ACCESS_TOKEN_EXPIRED"}


def test_the_page_of_the_sources_has_every_kind() -> None:
    text = (ROOT / "broker/credential/credential.c").read_text()
    kinds = re.search(r"kinds\[\] = \{(.*?)\n\};", text, re.S)
    assert kinds
    page = (ROOT / "docs/sources.md").read_text()
    found = re.findall(r'\{"(\w+)",', kinds[1])
    assert len(found) >= 5
    for kind in found:
        assert re.search(rf"^\| .* \| `type = .*{kind}` ", page, re.M) or f"`type = {kind}`" in page
    types = re.search(r"types\[\] = \{(.*?)\n\};", (
        ROOT / "broker/credential/credential_file.c").read_text(), re.S)
    assert types
    names = re.findall(r'\{"(\w+)"', types[1])
    assert len(names) >= 4
    for name in names:
        assert f"`{name}`" in page
