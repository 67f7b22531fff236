# SPDX-License-Identifier: Apache-2.0
"""Runs the checks and prints one line a finding."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import rules  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/lint",
        description="Checks the tree against the house rules: format, banned functions, dependency "
        "direction, library headers, file heads, sizes, names, private text, shell scripts.",
        epilog="Exit status: 0 clean, 1 findings, 2 usage.",
    )
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2],
                        metavar="DIR", help="the tree to check (default: this one)")
    parser.add_argument("--tidy", type=Path, metavar="BUILD_DIR",
                        help="run clang-tidy and cppcheck over this build's compile database, "
                        "and nothing else")
    options = parser.parse_args()
    options.root = options.root.resolve()
    if not options.root.is_dir():
        parser.error(f"{options.root} is no directory; give the tree's root")
    if options.tidy:
        options.tidy = options.tidy.resolve()
        if not (options.tidy / "compile_commands.json").is_file():
            parser.error(f"{options.tidy} has no compile_commands.json; run meson setup {options.tidy}")
    return options


def quick(root):
    files = tree.files(root)
    for rule in rules.RULES:
        yield from rule(files)
    yield from tools.clang_format(root, files)
    yield from tools.shellcheck(root, files)


def slow(root, build):
    yield from tools.clang_tidy(root, build)
    yield from tools.cppcheck(root, build)


def main():
    options = arguments()
    found = 0
    try:
        for path, line, what in slow(options.root, options.tidy) if options.tidy else quick(options.root):
            print(f"{path}:{line}: {what}", flush=True)
            found += 1
    except tools.Missing as missing:
        print(f"lint: {missing}", file=sys.stderr)
        return 1
    if found:
        print(f"lint: {found} finding{'s' if found > 1 else ''}", file=sys.stderr)
    else:
        print("lint: clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
