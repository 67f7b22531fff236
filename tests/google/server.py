# SPDX-License-Identifier: Apache-2.0
"""Listeners on loopback: TLS and plain for all, TLS for each API; a thread a connection."""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from . import scripted, wire
from .envelope import Answer, api_error
from .record import Call, Recorder
from .request import Request
from .script import NORMAL, Script, Step
from .state import State

ADMIN_PREFIX = "/_/"


class Server:
    """Reads requests, records them, sends what the script and the checks decide."""

    def __init__(self, state: State, script: Script, recorder: Recorder, context: ssl.SSLContext,
                 admin: Callable[[Request], Answer] | None) -> None:
        self.faults: list[str] = []  # tracebacks of our own mistakes
        self.tls_connections = 0
        self.tls_failures = 0
        self.plain_connections = 0
        self._state, self._script, self._recorder = state, script, recorder
        self._context = context
        self._admin = admin
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._wires: set[wire.Wire] = set()
        self._threads: set[threading.Thread] = set()
        self._listeners: list[socket.socket] = []
        self._closing = threading.Event()

    # life

    def start(self, port: int, http_port: int,
              api_ports: Mapping[str, int]) -> tuple[int, int, dict[str, int]]:
        """Listen on all ports (0: any); gives the real ones."""
        self._closing.clear()
        self._script.open()
        return (self._listen(port, tls=True), self._listen(http_port, tls=False),
                {api: self._listen(each, tls=True, api=api) for api, each in api_ports.items()})

    def stop(self) -> None:
        """Close listeners and connections, end all waiting."""
        self._closing.set()
        self._script.close()
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
        with self._lock:
            for each in self._wires:
                each.wake()
            threads = list(self._threads)
        for thread in threads:
            thread.join(10)
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    def _listen(self, port: int, *, tls: bool, api: str | None = None) -> int:
        listener = socket.create_server(("127.0.0.1", port), backlog=1024)
        self._listeners.append(listener)
        self._spawn(self._accept, listener, tls, api)
        return int(listener.getsockname()[1])

    def _fault(self) -> None:
        """A mistake of ours: said at once and again at the end, not lost in a thread."""
        self.faults.append(traceback.format_exc())
        print(self.faults[-1], file=sys.stderr)

    def _spawn(self, target: Callable[..., None], *args: Any) -> None:
        def run() -> None:
            try:
                target(*args)
            except Exception:
                self._fault()
            finally:
                with self._lock:
                    self._threads.discard(threading.current_thread())
        thread = threading.Thread(target=run, daemon=True)
        with self._lock:
            self._threads.add(thread)
        thread.start()

    def _accept(self, listener: socket.socket, tls: bool, api: str | None) -> None:
        while not self._closing.is_set():
            try:
                sock, _ = listener.accept()
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError:
                continue
            self._spawn(self._connection, sock, tls, api)

    # one connection

    def _connection(self, sock: socket.socket, tls: bool, api: str | None) -> None:
        each = wire.Wire(sock)
        with self._lock:
            self._wires.add(each)
            number = next(self._numbers)
        try:
            if not self._closing.is_set() and self._greeted(each, tls):
                while self._one(each, number, tls, api):
                    pass
        except OSError:
            pass  # the client vanished, or `stop` woke us
        finally:
            with self._lock:
                self._wires.discard(each)
            with contextlib.suppress(OSError):
                each.close()

    def _greeted(self, each: wire.Wire, tls: bool) -> bool:
        try:
            if tls:
                each.handshake(self._context)
        except OSError:
            with self._lock:
                self.tls_failures += 1
            return False
        with self._lock:
            self.tls_connections += tls
            self.plain_connections += not tls
        return True

    def _one(self, each: wire.Wire, number: int, tls: bool, api: str | None) -> bool:
        """One request; whether the connection goes on."""
        try:
            request = each.read_request()
        except wire.BadRequest as err:
            each.send(b"".join(wire.render(err.answer, None, NORMAL, self._state.now_s(), False)))
            return False
        if request is None:
            return False
        if api is not None:
            request.arrive_at(api)
        if self._admin is not None and not tls and request.path.startswith(ADMIN_PREFIX):
            return self._send(each, request, self._admin(request), NORMAL, None)
        call = Call(request.kind, request.method, request.target, request.headers,
                    request.recorded_body(), number, tls)
        step = self._script.take(request.kind)
        scripted.note_secrets(self._state, request)
        # before the record shows the call, so that a release after wait_for always meets it
        hang = None if step.hang_at is None else self._script.hang(request.kind)
        self._recorder.add(call)
        try:
            return self._meet(each, request, call, step, hang)
        finally:
            if hang is not None:
                self._script.unhang(request.kind, hang)

    def _meet(self, each: wire.Wire, request: Request, call: Call, step: Step,
              hang: threading.Event | None) -> bool:
        """What the script has for a request, around the checks."""
        if not self._script.pass_gate(request.kind) or self._closing.wait(step.delay_s):
            self._recorder.finish(call, None, "dropped")
            return False
        if step.reset:
            self._recorder.finish(call, None, "reset")
            each.reset()
            return False
        return self._send(each, request, self._decide(request, call, step), step, hang)

    def _decide(self, request: Request, call: Call, step: Step) -> Answer:
        try:
            answer = scripted.answer(self._state, request, step)
        except Exception:
            self._fault()
            answer = api_error(500, note="the stand-in failed")
        call.principal, call.note = request.principal, answer.note
        outcome = ("hung" if step.hang_at is not None else
                   "truncated" if step.truncate_at is not None else "answered")
        self._recorder.finish(call, answer.status, outcome)
        return answer

    def _send(self, each: wire.Wire, request: Request, answer: Answer, step: Step,
              hang: threading.Event | None) -> bool:
        keep = wire.keeps_alive(request, step)
        head, body = wire.render(answer, request, step, self._state.now_s(), keep)
        if step.truncate_at is not None:
            each.send(head + body[:step.truncate_at])
            return False
        raw = head + body
        if hang is not None:
            each.send(raw[:step.hang_at])
            if not each.wait(hang) or self._closing.is_set():
                return False
            raw = raw[step.hang_at:]
        each.send(raw)
        return keep
