# SPDX-License-Identifier: Apache-2.0
"""An HTTP proxy that forwards nothing and remembers what it was asked."""

from __future__ import annotations

import contextlib
import socket
import threading

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
REFUSAL = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Proxy:
    """Listens on loopback, as a context manager."""

    def __init__(self, address: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        self.asked: list[str] = []  # request lines
        self._listener = socket.create_server(address)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._listener.close()

    @property
    def variables(self) -> dict[str, str]:
        """The variables that name it."""
        return dict.fromkeys(VARIABLES, f"http://127.0.0.1:{self._listener.getsockname()[1]}")

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                connection.settimeout(5)
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            part = connection.recv(4096)
            if not part:
                break
            head += part
        self.asked.append(head.partition(b"\r\n")[0].decode("latin-1"))
        connection.sendall(REFUSAL)
