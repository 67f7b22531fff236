# SPDX-License-Identifier: Apache-2.0
"""Credential files as Google's tools write them: authorized_user and service_account."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from .ca import write_private

GOOGLE_TOKEN_URI = "https://oauth2.googleapis.com/token"


def new_rsa_key() -> rsa.RSAPrivateKey:
    """A new RSA-2048 key, what IAM makes for a service account key."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@functools.cache
def shared_rsa_key(name: str = "default") -> rsa.RSAPrivateKey:
    """One key a process and name: making one is slow."""
    return new_rsa_key()


def private_pem(key: rsa.RSAPrivateKey) -> str:
    """PKCS#8 PEM, the form of a key file's private_key."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode("ascii")


def pem_secrets(pem: str) -> set[str]:
    """The PEM and each full line of its base64 body, for a search for leaks."""
    lines = pem.strip().splitlines()[1:-1]
    return {pem, pem.strip(), *(line for line in lines if len(line) >= 32)}


def authorized_user_info(client_id: str, client_secret: str, refresh_token: str,
                         **extra: Any) -> dict[str, Any]:
    """What `gcloud auth application-default login` writes."""
    return {
        "account": "",
        "client_id": client_id,
        "client_secret": client_secret,
        "refresh_token": refresh_token,
        "type": "authorized_user",
        "universe_domain": "googleapis.com",
        **extra,
    }


def service_account_info(email: str, key: rsa.RSAPrivateKey, key_id: str, project: str,
                         client_id: str, token_uri: str = GOOGLE_TOKEN_URI,
                         **extra: Any) -> dict[str, Any]:
    """What `gcloud iam service-accounts keys create` writes."""
    return {
        "type": "service_account",
        "project_id": project,
        "private_key_id": key_id,
        "private_key": private_pem(key),
        "client_email": email,
        "client_id": client_id,
        "auth_uri": "https://accounts.google.com/o/oauth2/auth",
        "token_uri": token_uri,
        "auth_provider_x509_cert_url": "https://www.googleapis.com/oauth2/v1/certs",
        "universe_domain": "googleapis.com",
        **extra,
    }


def write_credential(path: Path, info: dict[str, Any]) -> Path:
    """Write a credential file, mode 0600."""
    return write_private(path, json.dumps(info, indent=2).encode() + b"\n")
