# SPDX-License-Identifier: Apache-2.0
"""Which of the two generations of libmicrohttpd the broker is built with: docs/decisions/0003."""

from __future__ import annotations

import subprocess

# Its parser takes one empty line before a request and no more, and ends a connection at a NUL.
IS_STRICT = int(subprocess.run(["pkg-config", "--modversion", "libmicrohttpd"], check=True, capture_output=True,
                               text=True).stdout.split(".")[0]) >= 1
