# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a Kubernetes API server, and a command beside it, on loopback alone.

    api_server.py CERT KEY PORT COMMAND...

Run it in a network namespace of its own. It answers every GET with a version, runs the command, and prints
one JSON object: the command's status, output and errors, the routes of the namespace, and the requests, each
with path, authorization, Host and TLS server name.
"""

from __future__ import annotations

import http.server
import json
import ssl
import subprocess
import sys
import threading

VERSION = {"major": "1", "minor": "32", "gitVersion": "v1.32.4"}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps(VERSION).encode()
        self.server.requests.append({
            "path": self.path.split("?")[0],
            "authorization": self.headers["Authorization"],
            "host": self.headers["Host"],
            "server_name": self.server.names.get(self.connection),
        })
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *args: object) -> None:
        """A client that does not accept the certificate hangs up; what it says of it is on its side."""


def main() -> None:
    cert, key, port, *command = sys.argv[1:]
    server = Server(("127.0.0.1", int(port)), Handler)
    server.requests, server.names = [], {}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    def note(connection: ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
        server.names[connection] = name

    context.sni_callback = note
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    routes = subprocess.run(["ip", "route"], capture_output=True, text=True, check=True).stdout
    json.dump({"status": done.returncode, "out": done.stdout, "err": done.stderr, "routes": routes,
               "requests": server.requests}, sys.stdout)


if __name__ == "__main__":
    main()
