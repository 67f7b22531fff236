# SPDX-License-Identifier: Apache-2.0
"""Sessions through the control API: opened, looked at, pinned, ended, and leased."""

from __future__ import annotations

import json
from typing import Any

from tests.google.standin import Standin

from .broker import Broker
from .crowd import Crowd
from .deadline import eventually
from .http1 import TOKEN, Client, Reply, request

MINT = "generateAccessToken"
SESSIONS = "/v1/sessions"
JSON = ("Content-Type", "application/json")

Session = dict[str, Any]


def call(client: Client, target: str, method: str = "GET", body: Any = None) -> Reply:
    """One request on a control connection; the body as JSON, bytes as they are."""
    client.send(whole(target, method, body))
    return client.read(head_only=method == "HEAD")


def whole(target: str, method: str = "GET", body: Any = None) -> bytes:
    """Its bytes."""
    if body is None:
        return request(target, method=method, host="postern", flavor=False)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return request(target, method=method, host="postern", flavor=False, body=data,
                   headers=[JSON, ("Content-Length", str(len(data)))])


def control(broker: Broker, target: str, method: str = "GET", body: Any = None) -> Reply:
    """The same on a connection of its own."""
    with broker.control_client() as client:
        return call(client, target, method, body)


def post(broker: Broker, **wish: Any) -> Reply:
    """POST /v1/sessions of profile `vertex`, on loopback, unless the wish says otherwise."""
    wish = {"profile": "vertex", "listen": "127.0.0.1", **wish}
    return control(broker, SESSIONS, "POST", {k: v for k, v in wish.items() if v is not ...})


def opened(broker: Broker, **wish: Any) -> Session:
    """A session that must open."""
    reply = post(broker, **wish)
    assert reply.status == 201, reply
    session: Session = reply.json
    return session


def get(broker: Broker, session: Session) -> Reply:
    """GET of one."""
    return control(broker, f"{SESSIONS}/{session['id']}")


def patch(broker: Broker, session: Session, *peers: str) -> Reply:
    """Pin it."""
    return control(broker, f"{SESSIONS}/{session['id']}", "PATCH", {"peer": list(peers)})


def delete(broker: Broker, session: Session) -> Reply:
    """End it."""
    return control(broker, f"{SESSIONS}/{session['id']}", "DELETE")


def listed(broker: Broker) -> list[Session]:
    """All that the caller sees."""
    reply = control(broker, SESSIONS)
    assert reply.status == 200, reply
    sessions: list[Session] = reply.json["sessions"]
    return sessions


def address(session: Session) -> tuple[str, int]:
    """Where it listens."""
    host, _, port = session["listen"].rpartition(":")
    return host.strip("[]"), int(port)


def ask(session: Session, target: str = TOKEN, *, source: str | None = None, **how: Any) -> Reply:
    """One request to its endpoint."""
    with Client(address(session), source=source) as client:
        return client.ask(target, **how)


def is_gone(session: Session) -> bool:
    """Whether nobody listens there any more."""
    try:
        Client(address(session), timeout_s=0.04).close()
    except ConnectionRefusedError:
        return True
    except (ConnectionResetError, TimeoutError):
        # It was in the backlog when the socket closed, or came in the instant of closing: such a SYN the
        # kernel drops, and the next try is refused where this one would be repeated a second later.
        pass
    return False


def waiting_crowd(google: Standin, session: Session, count: int = 64) -> Crowd:
    """So many requests at a session's endpoint that wait for a mint, which is held. Two more have been
    answered: one before, which pins it, and one behind them all, for which there must be room."""
    assert ask(session, "/").status == 200
    before = google.count(MINT)
    google.hold(MINT)
    crowd = Crowd(address(session), request(TOKEN), count)
    crowd.run(until_sent=True)
    google.wait_for(MINT, before + 1)
    assert ask(session, "/").status == 200
    return crowd


def error(reply: Reply) -> tuple[int, str, str]:
    """Status, code and message of a refusal, whose form must be right."""
    assert reply.header("Content-Type") == "application/json", reply
    body = reply.json
    assert set(body) == {"error"} and set(body["error"]) == {"code", "message"}, body
    return reply.status, body["error"]["code"], body["error"]["message"]


class Lease:
    """A leased session and the connection that holds it."""

    def __init__(self, client: Client, **wish: Any) -> None:
        self.client = client
        wish = {"profile": "vertex", "listen": "127.0.0.1", "lease": True, **wish}
        client.send(whole(SESSIONS, "POST", {k: v for k, v in wish.items() if v is not ...}))
        self.reply = client.read()
        assert self.reply.status == 201, self.reply
        assert self.reply.header("Content-Type") == "application/x-ndjson"
        self.session: Session = json.loads(self.line())

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def line(self) -> str:
        """The next line, which is a chunk of the body (RFC 9112 section 7.1); "" at its end."""
        data = self._until(b"\r\n")
        size = int(data, 16)
        chunk = self._take(size + 2)
        assert chunk.endswith(b"\r\n")
        line = chunk[:-2].decode("ascii")
        assert line == "" or line.endswith("\n"), line
        return line

    def is_over(self) -> bool:
        """Whether the stream ends in order, and the connection with it."""
        return self.line() == "" and self.client.rest() == b""

    def _more(self) -> None:
        data = self.client.sock.recv(65536)
        assert data, "the stream broke off"
        self.client._buffer += data  # pylint: disable=protected-access

    def _until(self, end: bytes) -> bytes:
        while end not in self.client._buffer:  # pylint: disable=protected-access
            self._more()
        return self._take(self.client._buffer.index(end) + len(end))[:-len(end)]

    def _take(self, count: int) -> bytes:
        while len(self.client._buffer) < count:
            self._more()
        taken = self.client._buffer[:count]
        self.client._buffer = self.client._buffer[count:]
        return taken


def leased(broker: Broker, **wish: Any) -> Lease:
    """A session with a lease."""
    return Lease(broker.control_client(), **wish)


def closed_with(broker: Broker, session: Session) -> dict[str, Any]:
    """The audit line of its end."""
    return broker.wait_for_audit("session.close", session=session["id"])


def wait_until_gone(session: Session, timeout_s: float = 5.0) -> None:
    """Until nobody listens there."""
    eventually(f"{session['listen']} closed", lambda: is_gone(session), timeout_s)
