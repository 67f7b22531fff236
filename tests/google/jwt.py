# SPDX-License-Identifier: Apache-2.0
"""Compact JWS with RS256, strictly (RFC 7515, RFC 7518 3.3, RFC 7519)."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

MAX_SPAN_S = 3600
MAX_FUTURE_IAT_S = 60


class JwtError(Exception):
    """Why an assertion is no good; `expired` tells the one reason that has its own answer."""

    def __init__(self, why: str, *, expired: bool = False, signature: bool = False) -> None:
        super().__init__(why)
        self.expired = expired
        self.signature = signature


def b64url(data: bytes) -> str:
    """base64url without padding (RFC 7515, 2)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _unb64url(text: str, what: str) -> bytes:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", text):
        raise JwtError(f"{what} is not base64url without padding")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) if len(text) % 4 != 1 else b""
    if b64url(data) != text:
        raise JwtError(f"{what} is not canonical base64url")
    return data


def _unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """object_pairs_hook that refuses a name given twice (RFC 7519, 4)."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name is given twice")
    return made


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def strict_json(data: bytes) -> Any:
    """JSON with unique names and no NaN (RFC 8259); ValueError otherwise."""
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_unique_object,
                          parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _object(text: str, what: str) -> dict[str, Any]:
    try:
        value = strict_json(_unb64url(text, what))
    except ValueError as err:
        raise JwtError(f"{what} is not a JSON object: {err}") from err
    if not isinstance(value, dict):
        raise JwtError(f"{what} is not a JSON object")
    return value


def looks_like_jwt(text: str) -> bool:
    """Three base64url parts: tells an assertion from an opaque token."""
    return re.fullmatch(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", text, re.ASCII) is not None


def encode(claims: dict[str, Any], key: rsa.RSAPrivateKey, kid: str | None = None,
           header: dict[str, Any] | None = None) -> str:
    """Sign claims with RS256; `header` changes header fields, None drops one."""
    head = {"alg": "RS256", "typ": "JWT", "kid": kid, **(header or {})}
    head = {name: value for name, value in head.items() if value is not None}
    signed = ".".join(b64url(json.dumps(part).encode()) for part in (head, claims))
    signature = key.sign(signed.encode("ascii"), padding.PKCS1v15(), hashes.SHA256())
    return f"{signed}.{b64url(signature)}"


def peek(token: str) -> dict[str, Any]:
    """The claims, not verified; empty when they cannot be read."""
    try:
        return _object(token.split(".")[1], "payload")
    except (JwtError, IndexError):
        return {}


def verify(token: str, keys_of: Callable[[str], dict[str, rsa.RSAPublicKey]], *,
           need_kid: bool) -> dict[str, Any]:
    """Check form, algorithm, issuer, key id and signature; give the claims."""
    parts = token.split(".")
    if len(parts) != 3:
        raise JwtError("not three parts")
    header = _object(parts[0], "header")
    claims = _object(parts[1], "payload")
    if header.get("alg") != "RS256":
        raise JwtError(f"alg is {header.get('alg')!r}, not RS256")
    if header.get("typ", "JWT") != "JWT":
        raise JwtError(f"typ is {header['typ']!r}, not JWT")
    if "crit" in header:
        raise JwtError("crit is not understood")
    issuer = claims.get("iss")
    keys = keys_of(issuer) if isinstance(issuer, str) else {}
    if not keys:
        raise JwtError("iss is not known")
    kid = header.get("kid")
    if kid is None and need_kid:
        raise JwtError("kid is missing")
    if kid is not None and (not isinstance(kid, str) or kid not in keys):
        raise JwtError("kid is not a key of iss")
    signature = _unb64url(parts[2], "signature")
    for public in [keys[kid]] if kid is not None else list(keys.values()):
        try:
            public.verify(signature, f"{parts[0]}.{parts[1]}".encode("ascii"),
                          padding.PKCS1v15(), hashes.SHA256())
            return claims
        except InvalidSignature:
            continue
    raise JwtError("the signature is wrong", signature=True)


def check_times(claims: dict[str, Any], now_s: float) -> None:
    """iat and exp: at most an hour apart, begun, not over (Google: OAuth 2.0 for servers)."""
    for name in ("iat", "exp"):
        if type(claims.get(name)) not in (int, float):
            raise JwtError(f"{name} is not a number")
    if claims["exp"] <= claims["iat"]:
        raise JwtError("exp is not after iat")
    if claims["exp"] - claims["iat"] > MAX_SPAN_S:
        raise JwtError("exp is more than 3600 s after iat")
    if claims["iat"] > now_s + MAX_FUTURE_IAT_S:
        raise JwtError("iat is in the future")
    if claims["exp"] <= now_s:
        raise JwtError("exp is past", expired=True)
