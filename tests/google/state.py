# SPDX-License-Identifier: Apache-2.0
"""What this Google knows: accounts, logins, grants, keys, tokens, and the time."""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa

from . import credentials, jwt
from .envelope import GET_ACCESS_TOKEN
from .federation import Federation

CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
IAM_SCOPE = "https://www.googleapis.com/auth/iam"
# what `gcloud auth application-default login` asks for
LOGIN_SCOPES = (
    "openid",
    "https://www.googleapis.com/auth/userinfo.email",
    CLOUD_PLATFORM,
    "https://www.googleapis.com/auth/sqlservice.login",
)


@dataclass
class Account:
    """A service account."""

    email: str
    unique_id: str
    projects: set[str] = field(default_factory=set)  # where it may call models
    long_lifetime: bool = False  # allowServiceAccountCredentialLifetimeExtension
    disabled: bool = False
    keys: dict[str, rsa.RSAPublicKey] = field(default_factory=dict)  # by key id


@dataclass(frozen=True)
class Login:
    """What a refresh token stands for."""

    principal: str
    client_id: str
    scopes: tuple[str, ...]


@dataclass(frozen=True)
class AccessToken:
    """An access token that was issued."""

    token: str
    principal: str
    scopes: tuple[str, ...]
    expires_ns: int
    minted: bool  # by generateAccessToken


@dataclass(frozen=True)
class ToolCall:
    """What a model calls, of the tools that a request offers it."""

    name: str
    arguments: dict[str, Any]


@dataclass
class Machine:
    """The VM that the bastion is."""

    account: str | None = None
    scopes: tuple[str, ...] = (CLOUD_PLATFORM,)
    universe: str | None = "googleapis.com"  # None: a server that does not know it
    token: AccessToken | None = None


def _digits(n: int) -> str:
    return "1" + "".join(secrets.choice("0123456789") for _ in range(n - 1))


class State:
    """All of it, behind one lock."""

    def __init__(self, project: str, universe: str = "googleapis.com") -> None:
        self.lock = threading.RLock()
        self.project = project
        self.iam_credentials_audience = f"https://iamcredentials.{universe}/"
        self.iam_audience = f"https://iam.{universe}/"
        self.token_audiences = {f"https://oauth2.{universe}/token"}
        self.clock_offset_s = 0.0
        self.source_life_s: float = 3599
        self.model_text = "Hello from the other side of the postern."
        self.tool_calls: deque[ToolCall] = deque()  # each instead of an answer, in this order
        self.accounts: dict[str, Account] = {}
        self.clients: dict[str, str] = {}  # OAuth client id: secret
        self.logins: dict[str, Login] = {}  # by refresh token
        self.grants: dict[tuple[str, str], set[str]] = {}  # (caller, target): permissions
        self.quota_projects: set[tuple[str, str]] = set()  # (caller, project)
        self.tokens: dict[str, AccessToken] = {}
        self.federation = Federation()
        self.vm = Machine()
        self.subject_token = ""  # what the subject token's URL gives
        self.subject_headers: dict[str, str] = {}  # what it wants to be sent
        self.assertions: list[str] = []
        self._seen: Counter[str] = Counter()
        self._known: set[str] = set()

    # the time

    def now_ns(self) -> int:
        """This Google's wall clock."""
        return time.time_ns() + int(self.clock_offset_s * 1e9)

    def now_s(self) -> float:
        """The same in seconds."""
        return self.now_ns() / 1e9

    # who there is

    def account(self, name: str) -> Account | None:
        """A service account by email or unique id."""
        with self.lock:
            if name in self.accounts:
                return self.accounts[name]
            return next((a for a in self.accounts.values() if a.unique_id == name), None)

    def add_account(self, email: str, projects: tuple[str, ...] = (),
                    long_lifetime: bool = False) -> Account:
        """Make a service account."""
        with self.lock:
            made = Account(email, _digits(21), set(projects), long_lifetime)
            self.accounts[email] = made
            return made

    def add_key(self, email: str, key: rsa.RSAPrivateKey) -> str:
        """Register a key of an account; gives its id. The private part is remembered as secret."""
        with self.lock:
            key_id = secrets.token_hex(20)
            self.accounts[email].keys[key_id] = key.public_key()
            self._known |= credentials.pem_secrets(credentials.private_pem(key))
            return key_id

    def keys_of(self, email: str) -> dict[str, rsa.RSAPublicKey]:
        """The public keys by which an account may sign."""
        with self.lock:
            account = self.accounts.get(email)
            return {} if account is None or account.disabled else dict(account.keys)

    def add_login(self, principal: str, scopes: tuple[str, ...] = LOGIN_SCOPES) -> dict[str, Any]:
        """A user logs in: a client (one a process of this class), a refresh token, an ADC."""
        with self.lock:
            if not self.clients:
                client_id = f"{_digits(12)}-{secrets.token_hex(16)}.apps.googleusercontent.com"
                self.clients[client_id] = "GOCSPX-" + secrets.token_urlsafe(21)
                self._known.add(self.clients[client_id])
            client_id, client_secret = next(iter(self.clients.items()))
            refresh_token = "1//0" + secrets.token_urlsafe(72)
            self.logins[refresh_token] = Login(principal, client_id, scopes)
            self._known.add(refresh_token)
            return credentials.authorized_user_info(client_id, client_secret, refresh_token)

    # who may what

    def holds(self, caller: str, target: str, permission: str = GET_ACCESS_TOKEN) -> bool:
        """Whether a caller holds a permission on a service account."""
        with self.lock:
            return permission in self.grants.get((caller, target), ())

    # what was issued

    def issue(self, principal: str, scopes: tuple[str, ...], life_s: float, *, minted: bool,
              length: int | None = None) -> AccessToken:
        """A new access token."""
        prefix = "ya29.c." if minted else "ya29.a0"
        text = prefix + secrets.token_urlsafe(160)
        if length is not None:
            text = (text + secrets.token_urlsafe(max(length, 1)))[:max(length, len(prefix) + 24)]
        with self.lock:
            made = AccessToken(text, principal, scopes, self.now_ns() + int(life_s * 1e9), minted)
            self.tokens[text] = made
            return made

    def saw_assertion(self, assertion: str) -> None:
        """Note an assertion, good or not, and how often it (or its jti) came."""
        with self.lock:
            self.assertions.append(assertion)
            self._seen[assertion] += 1
            claims = jwt.peek(assertion)
            if isinstance(claims.get("jti"), str):
                self._seen[f"{claims.get('iss')} jti {claims['jti']}"] += 1

    def replayed(self) -> list[str]:
        """Assertions, and 'ISS jti JTI', that came more than once."""
        with self.lock:
            return [what for what, n in self._seen.items() if n > 1]

    def secrets(self) -> set[str]:
        """Every string that must not appear in anybody's log."""
        with self.lock:
            clients = {p.client[1] for p in self.federation.providers.values() if p.client}
            return (self._known | set(self.tokens) | set(self.assertions)
                    | self.federation.issued | set(self.subject_headers.values()) | clients)
