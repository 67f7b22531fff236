# SPDX-License-Identifier: Apache-2.0
"""The checks that other programs make. Each yields (path, line, what and the repair)."""

import json
import os
import platform
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

JOBS = 2

# A test names its functions as its framework wants, and casts as its macros do.
NOT_FOR_TESTS = [
    "misc-use-internal-linkage",
    "performance-no-int-to-ptr",
    "readability-identifier-naming",
    "bugprone-reserved-identifier",
]


class Missing(Exception):
    """A program is not installed."""


def _run(root, command):
    if shutil.which(command[0]) is None:
        raise Missing(f"{command[0]} is not installed; run scripts/bootstrap")
    return subprocess.run(command, cwd=root, capture_output=True, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, check=False)


def _relative(root, build, path):
    """The path from the root of what clang-tidy names from either folder."""
    for folder in (build, root):
        full = Path(os.path.normpath(folder / path))
        if full.is_relative_to(root) and full.exists():
            return str(full.relative_to(root))
    return path


def _checked(done, seen, command):
    """Says so when a program failed without a finding, so that no failure is lost."""
    if done.returncode != 0 and not seen:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").split("\n")[-1]
        yield command, 0, f"failed with status {done.returncode}: {said}"


def clang_format(root, files):
    paths = [f.path for f in files if f.is_c]
    if not paths:
        return
    if not (root / ".clang-format").is_file():
        yield ".clang-format", 1, "missing; without it no format is checked"
        return
    done = _run(root, ["clang-format-19", "--style=file", "--dry-run", "-Werror", *paths])
    seen = set()
    for path, line in re.findall(r"^(.+?):(\d+):\d+: error:", done.stderr, re.M):
        if path not in seen:
            seen.add(path)
            yield path, line, f"is not formatted; run clang-format-19 -i {path}"
    yield from _checked(done, seen, "clang-format-19")


def shellcheck(root, files):
    paths = [f.path for f in files if f.is_shell]
    if not paths:
        return
    done = _run(root, ["shellcheck", "--severity=warning", "--format=gcc", *paths])
    found = re.findall(r"^(.+?):(\d+):\d+: \w+: (.*)$", done.stdout, re.M)
    for path, line, what in found:
        yield path, line, what
    yield from _checked(done, found, "shellcheck")


def _sources(root, build):
    """The C files of the compile database that lie in the tree and outside its build directories."""
    database = json.loads((build / "compile_commands.json").read_text())
    paths = {os.path.normpath(os.path.join(e["directory"], e["file"])) for e in database}
    top = {str(root / name) + os.sep for name in ("broker", "emulator", "sandbox", "tests")}
    return sorted(os.path.relpath(p, root) for p in paths if p.startswith(tuple(top)) and p.endswith(".c"))


def _clang_tidy_one(root, build, path):
    command = ["clang-tidy-19", "-p", str(build), "--quiet"]
    if path.startswith("tests/"):
        command.append("--checks=" + ",".join("-" + c for c in NOT_FOR_TESTS))
    done = _run(root, [*command, path])
    found = [
        (_relative(root, build, name), line, what)
        for name, line, what in re.findall(r"^(.+?):(\d+):\d+: (?:error|warning): (.*)$",
                                           done.stdout, re.M)
    ]
    return found + list(_checked(done, found, f"clang-tidy-19 {path}"))


def clang_tidy(root, build):
    with ThreadPoolExecutor(JOBS) as pool:
        seen = set()
        for found in pool.map(lambda p: _clang_tidy_one(root, build, p), _sources(root, build)):
            for finding in found:
                if finding not in seen:
                    seen.add(finding)
                    yield finding


def _texts(build):
    """The macros that the build sets to a text: literals are put together from them. Told one, cppcheck takes no
    others for granted, so it is told the processor too."""
    command = (build / "compile_commands.json").read_text()
    names = sorted(set(re.findall(r"-D(POSTERN_\w+)=", command)))
    return [f"-D__{platform.machine()}__", *(f"-D{name}=\"\"" for name in names)]


def cppcheck(root, build):
    paths = _sources(root, build)
    if not paths:
        return
    template = "{file}:{line}: {message} ({id})"
    # Newer ones look into what happens without memory (we end), and say where they looked no further.
    suppressed = [f"--suppress={each}" for each in ("nullPointerOutOfMemory", "normalCheckLevelMaxBranches")]
    done = _run(root, ["cppcheck", "--enable=warning,performance,portability", "--inline-suppr",
                       "--error-exitcode=1", "--std=c11", "-q", "-j", str(JOBS), "-I", ".",
                       *suppressed, *_texts(build),
                       f"--template={template}", "--template-location=", *paths])
    found = re.findall(r"^(.+?):(\d+): (.*)$", done.stderr, re.M)
    for path, line, what in found:
        yield path, line, what
    yield from _checked(done, found, "cppcheck")
