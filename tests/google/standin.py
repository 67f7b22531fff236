# SPDX-License-Identifier: Apache-2.0
"""The stand-in for Google: listens on loopback, checks what Google checks, fails on demand."""

from __future__ import annotations

import functools
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import admin, credentials
from .ca import make_authority
from .envelope import GET_ACCESS_TOKEN
from .federation import WORKFORCE, WORKLOAD, external_account_info, impersonated_info
from .record import Call, Recorder
from .request import APIS
from .script import Script, Step
from .server import Server
from .state import CLOUD_PLATFORM, LOGIN_SCOPES, AccessToken, Account, State, ToolCall

PROJECT = "my-project"
ACCOUNT = "agent@my-project.iam.gserviceaccount.com"
SOURCE_ACCOUNT = "bastion@my-project.iam.gserviceaccount.com"
VM_ACCOUNT = "vm@my-project.iam.gserviceaccount.com"
USER = "operator@example.com"
SUBJECT = "bastion"


class Standin:
    """One Google, as a context manager.

    At the start `USER` (by the ADC), `SOURCE_ACCOUNT` (by its key), `VM_ACCOUNT` (by the metadata
    server of the machine, which is here too) and `SUBJECT` of both pools may mint for `ACCOUNT`,
    which may call the models of `PROJECT`.
    """

    def __init__(self, directory: Path | str | None = None, *, port: int = 0, http_port: int = 0,
                 project: str = PROJECT, account: str = ACCOUNT,
                 universe_domain: str = "googleapis.com", admin_api: bool = False) -> None:
        self._temporary = tempfile.TemporaryDirectory() if directory is None else None
        self.directory = Path(self._temporary.name if self._temporary else str(directory))
        authority = make_authority(self.directory)
        self.ca_file = authority.ca_file
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(authority.cert_file, authority.key_file)
        context.set_alpn_protocols(["http/1.1"])
        self.port, self.http_port = port, http_port
        self._api_ports = dict.fromkeys(APIS.values(), 0)
        self.project, self.account = project, account
        self.state = State(project, universe_domain)
        self._script = Script()
        self._recorder = Recorder()
        self._server = Server(self.state, self._script, self._recorder, context,
                              functools.partial(admin.handle, self) if admin_api else None)
        self._key_infos: dict[str, dict[str, Any]] = {}
        self.add_account(account, projects=(project,))
        self.add_account(SOURCE_ACCOUNT)
        self.add_account(VM_ACCOUNT)
        self.state.vm.account = VM_ACCOUNT
        self._login = self.new_login()
        for caller in (USER, SOURCE_ACCOUNT, VM_ACCOUNT, self.principal(WORKLOAD),
                       self.principal(WORKFORCE)):
            self.grant(caller, account)
            self.allow_quota_project(caller, project)
        self.state.federation.projects.add((self.principal(WORKFORCE), project))

    # life

    def __enter__(self) -> Standin:
        self.start()
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        self.stop()
        if self._temporary is not None:
            self._temporary.cleanup()
        if kind is None and self.faults:
            raise AssertionError("the stand-in failed:\n" + "\n".join(self.faults))

    def start(self) -> None:
        """Listen; after a `stop`, on the same ports with the same memory."""
        self.port, self.http_port, self._api_ports = self._server.start(
            self.port, self.http_port, self._api_ports)
        self.state.token_audiences |= {
            f"{base}/token" for base in (self.url, self.url_of("oauth2"), self.http_url,
                                         f"https://localhost:{self.port}",
                                         f"http://localhost:{self.http_port}")}

    def stop(self) -> None:
        """Close listeners and connections, end all waiting."""
        self._server.stop()

    @property
    def faults(self) -> list[str]:
        """Tracebacks of the stand-in's own mistakes."""
        return self._server.faults

    @property
    def tls_connections(self) -> int:
        """TLS handshakes done."""
        return self._server.tls_connections

    @property
    def tls_failures(self) -> int:
        """TLS handshakes that failed, for instance because the client does not know the CA."""
        return self._server.tls_failures

    @property
    def plain_connections(self) -> int:
        """Connections to the plain port."""
        return self._server.plain_connections

    @property
    def url(self) -> str:
        """The TLS base URL at which everything answers, without a final slash."""
        return f"https://127.0.0.1:{self.port}"

    def url_of(self, api: str) -> str:
        """That at which one API answers and nothing else: oauth2, sts, iamcredentials or iam."""
        return f"https://127.0.0.1:{self._api_ports[api]}"

    @property
    def http_url(self) -> str:
        """The plain base URL."""
        return f"http://127.0.0.1:{self.http_port}"

    def describe(self) -> dict[str, Any]:
        """What standin.json says."""
        return {
            "url": self.url, "http_url": self.http_url, "port": self.port,
            "http_port": self.http_port, "ca_file": str(self.ca_file),
            "project": self.project, "account": self.account,
            "source_account": SOURCE_ACCOUNT, "user": USER,
            "clock_offset_s": self.clock_offset_s, "tls_connections": self.tls_connections,
        }

    # time

    @property
    def clock_offset_s(self) -> float:
        """How far this Google's clock is from the machine's."""
        return self.state.clock_offset_s

    @clock_offset_s.setter
    def clock_offset_s(self, value: float) -> None:
        self.state.clock_offset_s = value

    # who there is, and who may what

    def add_account(self, email: str, *, projects: tuple[str, ...] = (),
                    long_lifetime: bool = False) -> Account:
        """Make a service account; `projects` where it may call models, 12 h tokens or not."""
        return self.state.add_account(email, projects, long_lifetime)

    def remove_account(self, email: str) -> None:
        """Delete it; its tokens are refused from now on."""
        with self.state.lock:
            self.state.accounts.pop(email)

    def disable(self, email: str, disabled: bool = True) -> None:
        """Disable (or enable) an account: existing tokens are refused (or live again)."""
        self.state.accounts[email].disabled = disabled

    def grant(self, caller: str, target: str, *permissions: str) -> None:
        """Let a caller mint for a target, or give it the named permissions."""
        with self.state.lock:
            held = self.state.grants.setdefault((caller, target), set())
            held.update(permissions or (GET_ACCESS_TOKEN,))

    def revoke(self, caller: str, target: str) -> None:
        """Take all permissions back."""
        with self.state.lock:
            self.state.grants.pop((caller, target), None)

    def allow_quota_project(self, caller: str, project: str) -> None:
        """Let a caller name a project in x-goog-user-project."""
        self.state.quota_projects.add((caller, project))

    def new_login(self, principal: str = USER, *,
                  scopes: tuple[str, ...] = LOGIN_SCOPES) -> dict[str, Any]:
        """A user logs in (again); gives the authorized_user ADC. Older ones stay valid."""
        return self.state.add_login(principal, scopes)

    def revoke_login(self, info: Mapping[str, Any] | None = None) -> None:
        """End the login of an ADC (the first one, by default): invalid_grant from now on."""
        with self.state.lock:
            self.state.logins.pop((info or self._login)["refresh_token"], None)

    def adc(self, **extra: Any) -> dict[str, Any]:
        """The first login's ADC, with more fields if wanted (quota_project_id)."""
        return {**self._login, **extra}

    def service_account_key(self, email: str = SOURCE_ACCOUNT, *, fresh: bool = False,
                            **extra: Any) -> dict[str, Any]:
        """A key file's content; the key is shared in the process unless `fresh`."""
        with self.state.lock:
            if fresh or email not in self._key_infos:
                key = credentials.new_rsa_key() if fresh else credentials.shared_rsa_key(email)
                key_id = self.state.add_key(email, key)
                self._key_infos[email] = credentials.service_account_info(
                    email, key, key_id, self.project, self.state.accounts[email].unique_id)
            return {**self._key_infos[email], **extra}

    def remove_key(self, key_id: str, email: str = SOURCE_ACCOUNT) -> None:
        """Delete one of an account's keys; what it signs is refused from now on."""
        with self.state.lock:
            self.state.accounts[email].keys.pop(key_id)

    def write_adc(self, path: Path | str | None = None, **extra: Any) -> Path:
        """Write the ADC, mode 0600 (adc.json of the directory by default)."""
        return credentials.write_credential(Path(path or self.directory / "adc.json"),
                                            self.adc(**extra))

    def write_service_account(self, path: Path | str | None = None, *,
                              email: str = SOURCE_ACCOUNT, fresh: bool = False,
                              **extra: Any) -> Path:
        """Write a key file, mode 0600 (sa.json of the directory by default)."""
        return credentials.write_credential(Path(path or self.directory / "sa.json"),
                                            self.service_account_key(email, fresh=fresh, **extra))

    # federation, and the machine

    def principal(self, audience: str = WORKLOAD, subject: str = SUBJECT) -> str:
        """How grants and calls name a subject of a pool."""
        return self.state.federation.providers[audience].principal(subject)

    def new_subject_token(self, audience: str = WORKLOAD, *, subject: str = SUBJECT,
                          life_s: float = 3600) -> str:
        """A token of the issuer that a provider trusts; what the URL gives from now on."""
        with self.state.lock:
            made = self.state.federation.new_subject_token(audience, subject,
                                                           self.state.now_s() + life_s)
            self.state.subject_token = made
            return made

    @property
    def subject_token_url(self) -> str:
        """Where the newest subject token can be had."""
        return f"{self.url}/subject-token"

    @property
    def metadata_host(self) -> str:
        """The metadata server of the machine."""
        return f"127.0.0.1:{self.http_port}"

    def write_external_account(self, path: Path | str | None = None, *,
                               audience: str = WORKLOAD, source: dict[str, Any] | None = None,
                               impersonate: str | None = None, **extra: Any) -> Path:
        """Write an external_account file (external.json of the directory by default).

        Without a `source` it names subject-token of the directory, which gets a new token.
        """
        if source is None:
            token_file = self.directory / "subject-token"
            token_file.write_text(self.new_subject_token(audience) + "\n")
            source = {"file": str(token_file)}
        return credentials.write_credential(
            Path(path or self.directory / "external.json"),
            external_account_info(audience, source, impersonate, **extra))

    def write_impersonated(self, path: Path | str | None = None, *, account: str | None = None,
                           source: dict[str, Any] | None = None,
                           delegates: tuple[str, ...] = ()) -> Path:
        """Write an impersonated_service_account file, of the first login unless a source is given."""
        return credentials.write_credential(
            Path(path or self.directory / "impersonated.json"),
            impersonated_info(account or SOURCE_ACCOUNT, source or self.adc(), delegates))

    def issue_source_token(self, principal: str = USER, *,
                           scopes: tuple[str, ...] = (CLOUD_PLATFORM,),
                           life_s: float = 3599) -> str:
        """A source token without the round trip."""
        return self.state.issue(principal, scopes, life_s, minted=False).token

    def issue_minted_token(self, email: str | None = None, *,
                           scopes: tuple[str, ...] = (CLOUD_PLATFORM,),
                           life_s: float = 3600) -> str:
        """A minted token without the round trip."""
        return self.state.issue(email or self.account, scopes, life_s, minted=True).token

    def token_info(self, token: str) -> AccessToken | None:
        """Whose an access token is; None when it was not issued here."""
        with self.state.lock:
            return self.state.tokens.get(token)

    def call_tool(self, name: str, **arguments: Any) -> None:
        """Have the next model that is offered this tool call it, before it answers."""
        with self.state.lock:
            self.state.tool_calls.append(ToolCall(name, arguments))

    @property
    def minted(self) -> list[AccessToken]:
        """All minted tokens, oldest first."""
        with self.state.lock:
            return [token for token in self.state.tokens.values() if token.minted]

    @property
    def assertions(self) -> list[str]:
        """All assertions seen, in order, good or not."""
        with self.state.lock:
            return list(self.state.assertions)

    @property
    def replays(self) -> list[str]:
        """Assertions (and jti) that came more than once."""
        return self.state.replayed()

    def secrets(self) -> set[str]:
        """Every secret it ever issued or knows."""
        return self.state.secrets()

    # the script

    def script(self, kind: str, *steps: Step | Mapping[str, Any]) -> None:
        """Steps for the next requests of a kind, taken as they arrive."""
        self._script.add(kind, [Step.of(step) for step in steps])

    def always(self, kind: str, step: Step | Mapping[str, Any]) -> None:
        """The step of every request of a kind that finds no queued one."""
        self._script.always(kind, Step.of(step))

    def pending(self, kind: str) -> int:
        """Queued steps that no request took yet."""
        return self._script.pending(kind)

    def clear(self, kind: str | None = None) -> None:
        """Drop steps and holds, of one kind or all."""
        self._script.clear(kind)

    def hold(self, kind: str) -> None:
        """Make requests of a kind wait."""
        self._script.hold(kind)

    def release(self, kind: str, n: int | None = None) -> None:
        """End a hold (and hangs), or let n requests pass it."""
        self._script.release(kind, n)

    def waiting(self, kind: str) -> int:
        """Requests held or hanging right now."""
        return self._script.waiting(kind)

    # the record

    @property
    def calls(self) -> list[Call]:
        """All calls in order of arrival (a copy)."""
        return self._recorder.snapshot()

    def calls_of(self, kind: str | None) -> list[Call]:
        """The calls of one kind."""
        return self._recorder.snapshot(kind)

    def count(self, kind: str) -> int:
        """How many arrived."""
        return len(self._recorder.snapshot(kind))

    def wait_for(self, kind: str, n: int = 1, timeout: float = 10.0, *,
                 answered: bool = False) -> list[Call]:
        """Wait until n arrived (or were answered); TimeoutError otherwise."""
        return self._recorder.wait_for(kind, n, timeout, answered=answered)

    def forget_calls(self) -> None:
        """Empty the record; secrets stay known."""
        self._recorder.forget()
