# SPDX-License-Identifier: Apache-2.0
"""`python3 -m tests.google --dir DIR`: the stand-in as a process, for tests in other languages."""

from __future__ import annotations

import argparse
import json
import signal
from pathlib import Path

from .standin import ACCOUNT, PROJECT, Standin


def main() -> int:
    """Run until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="tests.google", description=__doc__)
    parser.add_argument("--dir", type=Path, required=True,
                        help="where ca.pem, adc.json, sa.json and standin.json go")
    parser.add_argument("--port", type=int, default=0, help="TLS port (0: any)")
    parser.add_argument("--http-port", type=int, default=0, help="plain port (0: any)")
    parser.add_argument("--project", default=PROJECT)
    parser.add_argument("--account", default=ACCOUNT, help="the account that is minted for")
    options = parser.parse_args()
    ending = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)  # before any thread, which inherit it
    directory = options.dir.resolve()
    with Standin(directory, port=options.port, http_port=options.http_port,
                 project=options.project, account=options.account, admin_api=True) as standin:
        standin.write_adc()
        standin.write_service_account()
        about = {**standin.describe(), "adc_file": str(directory / "adc.json"),
                 "service_account_file": str(directory / "sa.json")}
        (directory / "standin.json").write_text(json.dumps(about, indent=2) + "\n")
        print(f"ready url={standin.url} http_url={standin.http_url}", flush=True)
        signal.sigwait(ending)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
