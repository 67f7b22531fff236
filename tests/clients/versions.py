# SPDX-License-Identifier: Apache-2.0
"""Which version of a client is tested: the lock file's, or what the program itself says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

from . import facts

VERSION = r"(\d+(?:\.\d+)+[^\s\"<),+]*)"
# In which file, and before the version what.
LOCKS = {
    "requirements.txt": r"^{package}(?:\[.*\])?==",
    "go.mod": r"^\s*(?:require )?{package} v",
    "Cargo.lock": r'^name = "{package}"\nversion = "',
    "pom.xml": r"<artifactId>{package}</artifactId>\s*<version>",
}
TELL_S = 60


def of(client: str) -> str:
    """A client's."""
    known, folder = facts.of(client), facts.HERE / client
    if known.version:
        return _told(known.version)
    if (folder / "package-lock.json").exists():
        lock = json.loads((folder / "package-lock.json").read_text())
        return str(lock["packages"][f"node_modules/{known.package}"]["version"])
    for name, before in LOCKS.items():
        path = folder / name
        if path.exists():
            text = path.read_text()
            found = re.search(before.format(package=re.escape(known.package)) + VERSION, text, re.M)
            assert found, f"{path} has no version of {known.package!r}"
            return found[1]
    raise AssertionError(f"{client} has neither a lock file nor a command that tells its version")


def _told(command: tuple[str, ...]) -> str:
    program = shutil.which(command[0])
    assert program, f"{command[0]} is not installed"
    told = subprocess.run([program, *command[1:]], capture_output=True, text=True,
                          timeout=TELL_S, check=True, stdin=subprocess.DEVNULL).stdout
    found = re.search(VERSION, told)
    assert found, f"{' '.join(command)} says no version: {told!r}"
    return found[1]
