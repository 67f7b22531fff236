# SPDX-License-Identifier: Apache-2.0
"""Cargo.lock without and with the name of the registry, which no file of ours holds.

usage: cargo_lock.py strip LOCK | restore LOCK METADATA
restore takes the name from what `cargo metadata --no-deps` says of the package's own dependencies.
"""

import json
import re
import sys


def strip(lock):
    return re.sub(r'^source = "registry\+.*"\n', "", lock, flags=re.M)


def restore(lock, metadata):
    """Every package with a checksum is the registry's."""
    line = next(line for line in metadata.splitlines() if line.startswith("{"))
    sources = {dependency["source"] for package in json.loads(line)["packages"]
               for dependency in package["dependencies"]}
    if len(sources) != 1:
        sys.exit(f"cargo_lock.py: the dependencies are of {len(sources)} registries, not of one")
    return re.sub("^checksum = ", f'source = "{sources.pop()}"\nchecksum = ', lock, flags=re.M)


def main():
    _, how, lock, *metadata = sys.argv
    with open(lock, encoding="utf-8") as file:
        text = file.read()
    if how == "strip":
        sys.stdout.write(strip(text))
    else:
        with open(metadata[0], encoding="utf-8") as file:
            sys.stdout.write(restore(text, file.read()))


main()
