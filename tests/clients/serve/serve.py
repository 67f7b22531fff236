# SPDX-License-Identifier: Apache-2.0
"""Runs a client in Python: serve.py CLIENT. Reads commands, functions of the client; writes outcomes: lines."""

import concurrent.futures
import json
import runpy
import sys


def outcome(do):
    try:
        return {"text": do()}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main():
    client = runpy.run_path(sys.argv[1])
    for line in sys.stdin:
        command, *count = line.split()
        # "calls N" is N of them at the same time.
        work = [client["call"]] * int(count[0]) if command == "calls" else [client[command]]
        with concurrent.futures.ThreadPoolExecutor(len(work)) as pool:
            print(json.dumps(list(pool.map(outcome, work))), flush=True)


main()
