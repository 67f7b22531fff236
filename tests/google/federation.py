# SPDX-License-Identifier: Apache-2.0
"""Pools, their providers, and the subject tokens that those accept: what STS knows."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import Any

from .jwt import b64url

STS_TOKEN_URL = "https://sts.googleapis.com/v1/token"
JWT_TYPE = "urn:ietf:params:oauth:token-type:jwt"
ID_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:id_token"
SAML2_TYPE = "urn:ietf:params:oauth:token-type:saml2"
_POOL = "//iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/bastions"
_WORKFORCE = "//iam.googleapis.com/locations/global/workforcePools/staff"
WORKLOAD = f"{_POOL}/providers/oidc"
WORKFORCE = f"{_WORKFORCE}/providers/oidc"


@dataclass
class Provider:
    """A provider of a pool; `client` where STS knows one for it."""

    audience: str
    token_types: tuple[str, ...] = (JWT_TYPE, ID_TOKEN_TYPE, SAML2_TYPE)
    client: tuple[str, str] | None = None
    condition: bool = True  # the attribute condition admits the subject
    subjects: dict[str, tuple[str, float]] = field(default_factory=dict)  # token: (who, expiry)

    @property
    def is_workforce(self) -> bool:
        """A workforce pool bills to a project that the caller names."""
        return "/workforcePools/" in self.audience

    def principal(self, subject: str) -> str:
        """How grants name a subject of the pool (IAM principal identifiers)."""
        pool = self.audience.rpartition("/providers/")[0]
        return f"principal:{pool}/subject/{subject}"


class Federation:
    """All providers; behind the state's lock."""

    def __init__(self) -> None:
        self.providers = {name: Provider(name) for name in (WORKLOAD, WORKFORCE)}
        self.projects: set[tuple[str, str]] = set()  # (principal, project) for userProject
        self.issued: set[str] = set()

    def new_subject_token(self, audience: str, subject: str, expires_s: float) -> str:
        """A token of the other issuer: opaque here, in the form of a JWT of an hour."""
        claims = {"sub": subject, "jti": secrets.token_urlsafe(64),
                  "iat": int(expires_s) - 3600, "exp": int(expires_s)}
        token = f"eyJhbGciOiJub25lIn0.{b64url(json.dumps(claims).encode())}." \
            f"{secrets.token_urlsafe(64)}"
        self.providers[audience].subjects[token] = (subject, expires_s)
        self.issued.add(token)
        return token


def external_account_info(audience: str, credential_source: dict[str, Any],
                          impersonate: str | None = None, **extra: Any) -> dict[str, Any]:
    """What `gcloud iam workload-identity-pools create-cred-config` writes."""
    info: dict[str, Any] = {
        "universe_domain": "googleapis.com",
        "type": "external_account",
        "audience": audience,
        "subject_token_type": JWT_TYPE,
        "token_url": STS_TOKEN_URL,
        "credential_source": credential_source,
    }
    if impersonate is not None:
        info["service_account_impersonation_url"] = impersonation_url(impersonate)
    return {**info, **extra}


def impersonation_url(email: str) -> str:
    """The URL by which files name an account."""
    return ("https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/"
            f"{email}:generateAccessToken")


def impersonated_info(email: str, source: dict[str, Any],
                      delegates: tuple[str, ...] = ()) -> dict[str, Any]:
    """What `gcloud auth application-default login --impersonate-service-account` writes."""
    return {
        "delegates": list(delegates),
        "service_account_impersonation_url": impersonation_url(email),
        "source_credentials": source,
        "type": "impersonated_service_account",
    }
