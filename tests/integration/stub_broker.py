# SPDX-License-Identifier: Apache-2.0
"""A control socket that says yes: the launcher's side of the control API without a broker."""

from __future__ import annotations

import http.server
import json
import socketserver
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

ENDPOINT = "host.docker.internal:40123"
SESSION_ID = "00112233445566aa"
PROJECT = "my-project"
# Contract 8: the variables of a vertex session.
VARIABLES = {
    "GCE_METADATA_HOST": ENDPOINT, "GCE_METADATA_IP": ENDPOINT, "GCE_METADATA_ROOT": ENDPOINT,
    "METADATA_SERVER_DETECTION": "assume-present", "GCE_METADATA_MTLS_MODE": "none",
    "NO_PROXY": "host.docker.internal", "no_proxy": "host.docker.internal",
}
# The same where the endpoint is inside.
ADDRESS = "169.254.169.254"
INSIDE_VARIABLES = {name: value.replace(ENDPOINT, ADDRESS).replace("host.docker.internal", ADDRESS)
                    for name, value in VARIABLES.items()}
TICKET, SECRET = "5" * 32, "7" * 32


class _Handler(http.server.BaseHTTPRequestHandler):
    server: StubBroker
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Nothing."""

    def address_string(self) -> str:
        return "unix"

    def _reply(self, status: int, body: dict[str, Any] | None = None) -> None:
        data = json.dumps(body).encode() if body is not None else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self._reply(200, {"version": "stub", "pid": 1, "started_at": "2026-01-02T03:04:05Z",
                          "profiles": [{"name": "vertex", "backend": "vertex", "project": PROJECT,
                                        "location": "europe-west4"}]}
                    if self.path == "/v1/status" else {"sessions": []})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(asked)
        session = {"id": SESSION_ID, "profile": asked["profile"], "endpoint": ENDPOINT,
                   "listen": "172.17.0.1:40123", "pin": asked.get("pin"), "peer": None,
                   "lease": bool(asked.get("lease")), "env": VARIABLES}
        lines = [session]
        if asked.get("attach") == "inside":
            directory = Path(str(self.server.server_address)).parent / "private" / "attach"
            session |= {"endpoint": ADDRESS, "listen": f"{ADDRESS}:80", "env": INSIDE_VARIABLES,
                        "door": {"dir": str(directory), "ticket": TICKET, "secret": SECRET}}
            lines.append({"event": "attached"})
        if not asked.get("lease"):
            self._reply(201, session)
            return
        self.send_response(201)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for each in self.server.lines or lines:
            line = json.dumps(each).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.flush()
        self.rfile.read(1)  # as long as the other side holds it
        self.close_connection = True

    def do_PATCH(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._reply(200, {})

    def do_DELETE(self) -> None:
        self.server.deleted.append(self.path)
        self._reply(204)


class StubBroker(socketserver.ThreadingUnixStreamServer):
    """As a context manager."""

    daemon_threads = True

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), _Handler)
        self.asked: list[dict[str, Any]] = []
        self.deleted: list[str] = []
        self.lines: list[dict[str, Any]] = []  # instead of those of a lease
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> StubBroker:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()
