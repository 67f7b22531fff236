# SPDX-License-Identifier: Apache-2.0
"""Who else answers for a token. Each is a command; what is absent is skipped by its name."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.google.standin import ACCOUNT, PROJECT
from tests.integration.broker import ROOT
from tests.integration.deadline import eventually
from tests.integration.http1 import FLAVOR, TOKEN

from . import machine

READY_S = 10.0
STOP_S = 10.0
# A token as long as Google's are, and its answer.
TOKEN_TEXT = "ya29." + "x" * 200
BODY = json.dumps({"access_token": TOKEN_TEXT, "expires_in": 3599, "token_type": "Bearer"},
                  separators=(",", ":"))


@dataclass(frozen=True)
class Start:
    """How a peer is started: on a port of loopback, with a directory of its own."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Peer:
    """One that can be measured."""

    name: str
    about: str
    start: Callable[[Path, int], Start]
    missing: str | None = None  # why it cannot
    constant: bool = False  # not a peer but a limit: it knows nothing of tokens

    @contextlib.contextmanager
    def running(self, directory: Path) -> Iterator[Running]:
        """It, once it answers."""
        port = free_port()
        with launched(self.start(directory, port), directory) as process:
            running = Running(self.name, ("127.0.0.1", port), process.pid)
            eventually(f"an answer of {self.name}", lambda: is_ready(process, running.address,
                                                                     directory), READY_S)
            yield running


@dataclass(frozen=True)
class Running:
    """A server that answers."""

    name: str
    address: tuple[str, int]
    pid: int


def free_port() -> int:
    """A port that nobody listens on, outside the range that the kernel gives to clients."""
    for port in range(20000, 30000):
        with socket.socket() as probe:
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port
    raise OSError("no port is free")


@contextlib.contextmanager
def launched(start: Start, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The process, on the processor of what is measured; ended afterwards."""
    with open(directory / "log", "ab") as log, machine.staying_on(machine.SERVER):
        process = subprocess.Popen(
            start.command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=directory,
            env={"PATH": os.environ["PATH"], "HOME": str(directory), **start.environment})
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(BrokenPipeError):
            process.communicate(timeout=STOP_S)


def _gives_token(address: tuple[str, int]) -> bool:
    """Ask for a token once; by a client that takes HTTP/1.0, too."""
    connection = http.client.HTTPConnection(*address, timeout=READY_S)
    with contextlib.closing(connection), contextlib.suppress(ConnectionError):
        connection.request("GET", TOKEN, headers=dict([FLAVOR]))
        answer = connection.getresponse()
        return answer.status == 200 and b"access_token" in answer.read()
    return False


def is_ready(process: subprocess.Popen[bytes], address: tuple[str, int], directory: Path) -> bool:
    """Whether it gives a token; it must not have ended."""
    if process.poll() is not None:
        raise RuntimeError(f"{process.args} ended with {process.returncode}: "
                           + (directory / "log").read_text(errors="replace")[-2000:])
    return _gives_token(address)


def _missing(program: str) -> str | None:
    return None if shutil.which(program) else f"there is no {program}"


def _nginx(directory: Path, port: int) -> Start:
    places = " ".join(f"{name}_temp_path {directory};"
                      for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    config = directory / "nginx.conf"
    config.write_text(f"""daemon off; master_process off; worker_processes 1;
pid {directory}/pid; error_log {directory}/errors;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000000; {places}
  default_type application/json; server_tokens off;
  add_header Metadata-Flavor Google; add_header X-XSS-Protection 0;
  add_header X-Frame-Options SAMEORIGIN;
  server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ return 200 '{BODY}'; }} }}
}}
""")
    return Start(["nginx", "-e", str(directory / "errors"), "-c", str(config)])


def _origin(directory: Path, port: int) -> Start:
    gcloud = directory / "gcloud"
    gcloud.write_text(f"#!/bin/sh\necho {TOKEN_TEXT}\n")
    gcloud.chmod(0o755)
    return Start([sys.executable, "-m", "tests.bench.origin", str(port), str(gcloud), ACCOUNT, PROJECT],
                 {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"})


def _gce_metadata_server(directory: Path, port: int) -> Start:
    """With a token from the environment: nothing is minted. The variable that holds the token is
    named twice, for some of its versions take the value for a name."""
    config = directory / "config.json"
    account = {"aliases": ["default"], "email": ACCOUNT,
               "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}
    config.write_text(json.dumps({"computeMetadata": {"v1": {
        "instance": {"serviceAccounts": {"default": account, ACCOUNT: account}},
        "project": {"projectId": PROJECT, "numericProjectId": 123456789012}}}}))
    return Start(["gce_metadata_server", "-interface", "127.0.0.1", "-port", f":{port}", "-configFile",
                  str(config)],
                 {"GOOGLE_ACCESS_TOKEN": TOKEN_TEXT, TOKEN_TEXT: TOKEN_TEXT, "GOOGLE_ID_TOKEN": "none",
                  "GOOGLE_PROJECT_ID": PROJECT, "GOOGLE_NUMERIC_PROJECT_ID": "123456789012",
                  "GOOGLE_SERVICE_ACCOUNT": ACCOUNT})


def known(programs: Path) -> list[Peer]:
    """Those that the bench knows how to start, at hand or not."""
    return [
        Peer("nginx", "nginx answering a constant: the practical limit", _nginx, _missing("nginx"),
             constant=True),
        Peer("libmicrohttpd", "the library alone answering a constant",
             lambda _, port: Start([str(programs / "constant"), str(port), BODY]),
             constant=True),
        Peer("origin", "the design that Postern replaces: Python's ThreadingHTTPServer, tokens "
             "minted by `gcloud`", _origin),
        Peer("gce_metadata_server", "the emulator in Go, its token from the environment",
             _gce_metadata_server, _missing("gce_metadata_server")),
    ]


def given(text: str) -> Peer:
    """One from `NAME=COMMAND`; {port} and {directory} stand for what it is given."""
    name, equals, command = text.partition("=")
    words = shlex.split(command)
    if not name or not equals or not words or "{port}" not in command:
        raise ValueError(f"{text!r} is not NAME=COMMAND with {{port}} in it")
    return Peer(name, f"`{command}`", lambda directory, port: Start([
        word.replace("{port}", str(port)).replace("{directory}", str(directory)) for word in words]),
        _missing(words[0]))
