# SPDX-License-Identifier: Apache-2.0
"""Which files are checked, and what one holds."""

import os
import subprocess
from functools import cached_property
from pathlib import Path

IGNORED_FOLDERS = {".git", "build", "node_modules", "__pycache__", ".pytest_cache", ".venv"}
SHELLS = {"sh", "bash", "dash"}


class File:
    """One file of the tree: its path from the root and its text (None where it is not text)."""

    def __init__(self, root, path):
        self.path = path
        self.full = root / path
        self.parts = path.split("/")
        self.name = self.parts[-1]
        self.stem, self.suffix = os.path.splitext(self.name)

    @cached_property
    def text(self):
        data = self.full.read_bytes()
        if b"\0" in data[:8192]:
            return None
        return data.decode("utf-8", "replace")

    @cached_property
    def lines(self):
        return (self.text or "").split("\n")

    @property
    def is_c(self):
        return self.suffix in (".c", ".h")

    @property
    def is_shell(self):
        return self.suffix in (".sh", ".bash") or self._interpreter in SHELLS

    @property
    def is_python(self):
        return self.suffix == ".py" or self._interpreter.startswith("python")

    @property
    def in_tests(self):
        return self.parts[0] == "tests"

    @property
    def _interpreter(self):
        words = self.lines[0][2:].split() if self.lines[0].startswith("#!") else []
        if words and words[0].endswith("/env"):
            words = [w for w in words[1:] if not w.startswith("-")]
        return words[0].rsplit("/", 1)[-1] if words else ""


def files(root):
    """Tracked files and untracked ones that are not ignored; without git, all but build output."""
    paths = _from_git(root) if (root / ".git").exists() else None
    if paths is None:
        paths = _from_disk(root)
    found = [File(root, p) for p in sorted(set(paths))]
    return [f for f in found if f.full.is_file() and not f.full.is_symlink()]


def _from_git(root):
    command = ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z",
               "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        return None
    if done.returncode != 0:
        return None
    return [os.fsdecode(p) for p in done.stdout.split(b"\0") if p]


def _from_disk(root):
    paths = []
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in IGNORED_FOLDERS]
        paths += [str((Path(folder) / n).relative_to(root)) for n in names]
    return paths
