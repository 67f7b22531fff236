# SPDX-License-Identifier: Apache-2.0
"""A stand-in for what Postern replaces, written anew with the same structure.

Python's ThreadingHTTPServer with connections that are kept, a closed list of paths, and a token from
`gcloud auth print-access-token` with impersonation, kept until 300 s before its end; the lock is held over a
mint. Head and body leave in two pieces, as http.server sends them: with Nagle's algorithm on, the second waits
for the client's acknowledgement of the first.

usage: python3 -m tests.bench.origin PORT GCLOUD ACCOUNT PROJECT
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LIFETIME_S = 3600
MARGIN_S = 300
MINT_S = 60
V1 = "/computeMetadata/v1"
ACCOUNTS = f"{V1}/instance/service-accounts"


class Tokens:
    """The one token, minted when it is first asked for and when it is nearly over."""

    def __init__(self, gcloud: str, account: str) -> None:
        self._command = [gcloud, "auth", "print-access-token",
                         f"--impersonate-service-account={account}", f"--lifetime={LIFETIME_S}s"]
        self._lock = threading.Lock()
        self._token, self._end = "", 0.0

    def answer(self) -> bytes:
        """The body of an answer."""
        with self._lock:
            if time.time() > self._end - MARGIN_S:
                done = subprocess.run(self._command, check=True, capture_output=True, text=True,
                                      timeout=MINT_S)
                self._token, self._end = done.stdout.strip(), time.time() + LIFETIME_S
            left_s = int(self._end - time.time())
            return json.dumps({"access_token": self._token, "expires_in": left_s,
                               "token_type": "Bearer"}).encode()


def handler(tokens: Tokens, account: str, project: str) -> type[BaseHTTPRequestHandler]:
    """The class that answers."""
    texts = {f"{V1}/project/project-id": project}
    for name in ("default", account):
        texts[f"{ACCOUNTS}/{name}/email"] = account
        texts[f"{ACCOUNTS}/{name}/scopes"] = "https://www.googleapis.com/auth/cloud-platform\n"

    class Handler(BaseHTTPRequestHandler):
        """One request."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """The guard, then the list."""
            if self.headers.get("Metadata-Flavor") != "Google":
                self._send(403, "text/plain", b"Forbidden\n")
            elif self.path in (f"{ACCOUNTS}/default/token", f"{ACCOUNTS}/{account}/token"):
                self._send(200, "application/json", tokens.answer())
            elif self.path in texts:
                self._send(200, "application/text", texts[self.path].encode())
            else:
                self._send(404, "text/plain", b"Not Found\n")

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Metadata-Flavor", "Google")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: a log would cost it more."""

    return Handler


def main() -> None:
    """Serve until the end."""
    port, gcloud, account, project = sys.argv[1:]
    server = ThreadingHTTPServer(("127.0.0.1", int(port)),
                                 handler(Tokens(gcloud, account), account, project))
    server.serve_forever()


if __name__ == "__main__":
    main()
