# SPDX-License-Identifier: Apache-2.0
"""Counts JUnit results: prints `PASSED FAILED`, and names on standard error what failed or was skipped.

count.py JUNIT_XML [MESON_TESTLOG_JSON]

A skipped or xfailed test counts as failed unless POSTERN_ALLOW_SKIP (names, separated by spaces or
commas) holds its name, with or without its class and parameters; then it does not count at all.
"""

import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree


def say(text):
    print(f"test: {text}", file=sys.stderr)


def names_of(case):
    """What POSTERN_ALLOW_SKIP may call a test. Meson puts a number before the name."""
    name = re.sub(r"^\d+ ", "", case.get("name", ""))
    bare = name.split("[")[0]
    group = case.get("classname", "")
    return {name, bare, f"{group}.{name}", f"{group}.{bare}", group}


def count_cases(path, allowed):
    passed = failed = 0
    for case in ElementTree.parse(path).iter("testcase"):
        title = f"{case.get('classname')}: {case.get('name')}"
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
            say(f"failed: {title}")
        elif case.find("skipped") is None:
            passed += 1
        elif names_of(case) & allowed:
            say(f"skipped, as POSTERN_ALLOW_SKIP says: {title}")
        else:
            failed += 1
            say(f"skipped, but not in POSTERN_ALLOW_SKIP: {title}")
    return passed, failed


def count_bad_tests(path):
    """Meson's own verdicts: a test that ends early or late has no failed case in its JUnit file."""
    bad = 0
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            test = json.loads(line)
            if test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL"):
                bad += 1
                say(f"failed: {test['name']} ({test['result']})")
    return bad


def main():
    allowed = set(re.split(r"[\s,]+", os.environ.get("POSTERN_ALLOW_SKIP", ""))) - {""}
    try:
        passed, failed = count_cases(sys.argv[1], allowed)
        if len(sys.argv) > 2:
            failed = max(failed, count_bad_tests(sys.argv[2]))
    except (OSError, ElementTree.ParseError, ValueError) as error:
        say(f"no results: {error}")
        passed, failed = 0, 1
    if passed + failed == 0:
        say(f"no test ran ({sys.argv[1]})")
    print(passed, failed)


if __name__ == "__main__":
    main()
