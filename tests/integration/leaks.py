# SPDX-License-Identifier: Apache-2.0
"""What must not be found in anything the suite wrote, and the search for it."""

from __future__ import annotations

import base64
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

# Every secret that a stand-in knew or a broker gave.
known: set[str] = set()

# A secret is found by a part of this length, wherever it was cut: one begins every STRIDE bytes.
WINDOW = 24
STRIDE = 8

# What secrets consist of; the rest of a key file's lines are its frame.
_WORD = re.compile(rb"[A-Za-z0-9._~/+=-]{%d,}" % WINDOW)


def note(secrets: Iterable[str]) -> None:
    """Remember secrets until the end of the session; ValueError where one could not be found."""
    for secret in secrets:
        if not _WORD.search(secret.encode()):
            raise ValueError(f"no {WINDOW} bytes of {secret[:8]}… are searched for")
        known.add(secret)


def _forms(secret: bytes) -> Iterator[bytes]:
    """A secret itself, and as it comes out of base64 behind 0, 1 and 2 other bytes."""
    yield secret
    for shift in range(3):
        yield base64.b64encode(b"\0" * shift + secret)[4 if shift else 0:-4]


def _windows(secret: str) -> Iterator[bytes]:
    for form in _forms(secret.encode()):
        for word in _WORD.findall(form):
            last = len(word) - WINDOW
            for at in {*range(0, last, STRIDE), last}:
                yield word[at:at + WINDOW]


def _files(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.rglob("*")):
        if stat.S_ISREG(path.lstat().st_mode):
            yield path


def find(directory: Path, secrets: Iterable[str]) -> list[str]:
    """Where parts of secrets stand in the files below a directory, as "FILE: FIRST BYTES…"."""
    # A key's line is also a part of its file.
    index: dict[bytes, set[str]] = {}
    for secret in secrets:
        for window in _windows(secret):
            index.setdefault(window, set()).add(secret[:8])
    found = set()
    for path in _files(directory):
        for word in set(_WORD.findall(path.read_bytes())):
            for at in range(len(word) - WINDOW + 1):
                begins = index.get(word[at:at + WINDOW], ())
                found.update(f"{path}: {begin}…" for begin in begins)
    return sorted(found)
