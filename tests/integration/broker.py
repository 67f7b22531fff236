# SPDX-License-Identifier: Apache-2.0
"""One posternd: configured, started, spoken to, stopped, and looked after for faults."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from tests.google.standin import Standin

from . import configuration
from .deadline import FACTOR, allowed, eventually
from .http1 import TOKEN, Client, Reply, request

ROOT = Path(__file__).resolve().parents[2]
READY_S = 10.0
STOP_S = 15.0

_READY = re.compile(r"ready control=(\S+)((?: profile=\S+ listen=\S+)*)")
_ENDPOINT = re.compile(r" profile=(\S+) listen=(\S+):(\d+)")
# AddressSanitizer, LeakSanitizer, UndefinedBehaviorSanitizer, valgrind, libmicrohttpd
_FAULT = re.compile(r"Sanitizer|runtime error:|^==\d+==|Fatal error in GNU libmicrohttpd", re.M)


def binary() -> str:
    """The path of posternd in the build tree that is tested."""
    build = os.environ.get("POSTERN_BUILD") or str(ROOT / "build" / "asan")
    return str(Path(build, "broker", "posternd").absolute())


def command(*args: str | Path) -> list[str]:
    """posternd with arguments, wrapped as POSTERN_WRAP says."""
    return [*os.environ.get("POSTERN_WRAP", "").split(), binary(), *map(str, args)]


def environment(home: Path, **extra: str) -> dict[str, str]:
    """What a broker under test sees of the environment: nothing of the machine's own."""
    kept = ("PATH", "LANG", "TZ", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS",
            "ASAN_SYMBOLIZER_PATH", "LLVM_PROFILE_FILE")
    return {name: os.environ[name] for name in kept if name in os.environ} | {
        "HOME": str(home), **extra}


def as_a_user() -> list[str]:
    """What makes a command one of a plain user where the tests are root's: the same user under
    another number, without privileges."""
    return ["unshare", "--user", "--map-user=1000"] if os.geteuid() == 0 else []


def run(*args: str | Path, home: Path, env: Mapping[str, str] | None = None,
        cwd: Path | None = None, prefix: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """A posternd that is expected to end by itself; what it says is kept in `home`, too."""
    done = subprocess.run([*prefix, *command(*args)], env=environment(home, **(env or {})), cwd=cwd,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=allowed(20), check=False)
    for name, text in (("stdout", done.stdout), ("stderr", done.stderr)):
        with open(home / name, "a", encoding="utf-8") as file:
            file.write(text)
    assert not _FAULT.search(done.stderr), done.stderr
    return done


class NotStarted(Exception):
    """posternd ended before it was ready."""


class Broker:
    """A running broker, as a context manager that demands a clean end."""

    def __init__(self, directory: Path, google: Standin | None = None, *,
                 args: Sequence[str | Path] | None = None, env: Mapping[str, str] | None = None,
                 descriptors: int | None = None, umask: int | None = None,
                 pass_fds: Iterable[int] = (), prefix: Sequence[str] = (),
                 stderr: int | None = None, **settings: Any) -> None:
        """Without `args` the `settings` make its file: see configuration.sections()."""
        self.directory = directory
        self.google = google
        self.config_file = directory / "postern.conf"
        self.sections = configuration.sections(directory, google, **settings)
        self._args = args
        self._env = environment(directory, **(env or {}))
        limit = [] if descriptors is None else ["prlimit", f"--nofile={descriptors}:{descriptors}"]
        self._prefix = [*prefix, *limit]
        self._pass_fds, self._stderr, self._umask = tuple(pass_fds), stderr, umask
        self._files: list[TextIO] = []
        self._process: subprocess.Popen[str] | None = None
        self.control_path = ""
        self.endpoints: dict[str, tuple[str, int]] = {}
        self.statuses: list[int] = []  # of every process of this broker that ended

    # life

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        if kind is None:
            self.finish()
        else:
            self.discard()

    def start(self) -> None:
        """Write the file, start the process, wait for its ready line."""
        if self._args is None:
            self.config_file.write_text(configuration.render(self.sections))
        args = ["--config", self.config_file] if self._args is None else list(self._args)
        out, err = (open(self.directory / name, "a", encoding="utf-8")  # noqa: SIM115
                    for name in ("stdout", "stderr"))
        self._files = [out, err]
        start = out.tell()
        self._process = subprocess.Popen(
            [*self._prefix, *command(*args)], env=self._env, stdin=subprocess.DEVNULL, stdout=out,
            stderr=err if self._stderr is None else self._stderr,
            cwd=self.directory, text=True, pass_fds=self._pass_fds,
            umask=-1 if self._umask is None else self._umask)
        try:
            self._read_ready(eventually("a ready line", lambda: self._first_line(start), READY_S))
        except BaseException:
            self.discard()
            raise

    def _first_line(self, start: int) -> str:
        line, newline, _ = (self.directory / "stdout").read_text()[start:].partition("\n")
        if not newline and self.process.poll() is not None:
            raise NotStarted(f"posternd ended with {self.process.returncode}:\n{self.log}")
        return line if newline else ""

    def _read_ready(self, line: str) -> None:
        match = _READY.fullmatch(line)
        assert match, f"no ready line: {line!r}"
        self.control_path = match[1]
        self.endpoints = {name: (host.strip("[]"), int(port))
                          for name, host, port in _ENDPOINT.findall(match[2])}

    @property
    def process(self) -> subprocess.Popen[str]:
        """The one that runs, or ran last."""
        assert self._process is not None, "not started"
        return self._process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def wait(self, timeout_s: float = STOP_S) -> int:
        """Its exit status, once it has ended."""
        status = self.process.wait(allowed(timeout_s))
        for file in self._files:
            file.close()
        self.statuses.append(status)
        self._process = None
        return status

    def stop(self, timeout_s: float = STOP_S) -> int:
        """SIGTERM, then its exit status."""
        self.signal(signal.SIGTERM)
        return self.wait(timeout_s)

    def kill(self) -> None:
        """SIGKILL: not an end that counts."""
        self.signal(signal.SIGKILL)
        self.wait()
        self.statuses.pop()

    def finish(self) -> None:
        """Stop it if it runs; every end must have been clean."""
        if self._process is not None:
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError("posternd did not end after SIGTERM") from None
        assert not any(self.statuses), f"posternd ended with {self.statuses}:\n{self.log[-4000:]}"
        fault = _FAULT.search(self.log)
        assert not fault, f"posternd has a fault:\n{self.log[fault.start():][:8000]}"

    def discard(self) -> None:
        """End it after a failure; whatever it says is in its files."""
        if self._process is not None:
            with contextlib.suppress(OSError):
                self.process.kill()
            self.process.wait()
            for file in self._files:
                file.close()
            self._process = None

    # configuration

    def configure(self, **settings: Any) -> None:
        """Write another file in the place of its own; it is read at the next reload."""
        self.sections = configuration.sections(self.directory, self.google, **settings)
        self.write_config(configuration.render(self.sections))

    def write_config(self, text: str) -> None:
        """The same with any text; renamed into place, as editors do."""
        new = self.config_file.with_suffix(".new")
        new.write_text(text)
        new.rename(self.config_file)

    def reload(self, timeout_s: float = 5.0) -> dict[str, Any]:
        """SIGHUP, then the audit line that says what came of it."""
        before = len(self.audit_of("config.reload"))
        self.signal(signal.SIGHUP)
        return eventually("a config.reload in the audit trail",
                          lambda: self.audit_of("config.reload")[before:], timeout_s)[0]

    # talking to it

    def address(self, profile: str | None = None) -> tuple[str, int]:
        """Where a profile's endpoint is; the first one's without a name."""
        return self.endpoints[profile or next(iter(self.endpoints))]

    def client(self, profile: str | None = None, **how: Any) -> Client:
        """A connection to an endpoint."""
        return Client(self.address(profile), **how)

    def get(self, target: str | bytes = "/", profile: str | None = None, *,
            source: str | None = None, **how: Any) -> Reply:
        """One request on a connection of its own."""
        with self.client(profile, source=source) as client:
            return client.ask(target, **how)

    def token(self, profile: str | None = None) -> Reply:
        """Ask for the token; a wrapped broker again where it is only late with it."""
        end = time.monotonic() + (allowed(3) if FACTOR > 1 else 0)
        while True:
            reply = self.get(TOKEN, profile)
            if time.monotonic() > end or not self._is_late(reply):
                return reply

    def _is_late(self, reply: Reply) -> bool:
        """Whether the mint behind a 503 was still under way, and Google does not hold it up."""
        ref = re.search(rb"ref ([0-9a-f]{8})", reply.body)
        if reply.status != 503 or ref is None or re.search(
                r"no token: ref=REF|ref=REF .*class=transient".replace("REF", ref[1].decode()),
                self.log):
            return False
        return self.google is None or not any(map(self.google.waiting,
                                                  ("token", "generateAccessToken")))

    def control_client(self) -> Client:
        """A connection to the control socket."""
        return Client(self.control_path)

    def control(self, target: str, method: str = "GET", **how: Any) -> Reply:
        """One request to the control socket."""
        with self.control_client() as client:
            client.send(request(target, method=method, host="postern", flavor=False, **how))
            return client.read(head_only=method == "HEAD")

    def status(self) -> dict[str, Any]:
        """GET /v1/status."""
        reply = self.control("/v1/status")
        assert reply.status == 200, reply
        answer: dict[str, Any] = reply.json
        return answer

    def until(self, good: Callable[[Reply], bool], profile: str | None = None,
              timeout_s: float = 5.0) -> Reply:
        """The first answer for a token that is good."""
        def look() -> Reply | None:
            reply = self.token(profile)
            return reply if good(reply) else None
        return eventually("such an answer for a token", look, timeout_s)

    def until_token(self, profile: str | None = None, timeout_s: float = 5.0) -> Reply:
        """The first answer that is a token."""
        return self.until(lambda reply: reply.status == 200, profile, timeout_s)

    # what it wrote

    @property
    def log(self) -> str:
        """Standard error so far."""
        return (self.directory / "stderr").read_text(errors="backslashreplace")

    def wait_for_log(self, pattern: str, timeout_s: float = 5.0) -> re.Match[str]:
        """The first line that fits."""
        return eventually(f"{pattern!r} in the log", lambda: re.search(pattern, self.log, re.M),
                          timeout_s)

    @property
    def audit(self) -> list[dict[str, Any]]:
        """The whole lines of the audit trail so far."""
        path = self.directory / "audit.jsonl"
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def audit_of(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        """The lines of an event whose fields have these values."""
        return [line for line in self.audit if line["event"] == event
                and all(line.get(name) == value for name, value in fields.items())]

    def wait_for_audit(self, event: str, **fields: Any) -> dict[str, Any]:
        """The first such line."""
        return eventually(f"{event} {fields} in the audit trail",
                          lambda: self.audit_of(event, **fields))[0]
