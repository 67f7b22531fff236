# SPDX-License-Identifier: Apache-2.0
"""A small client of the stand-in, for its own tests."""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Any
from urllib.parse import urlencode, urlsplit

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from . import jwt
from .standin import ACCOUNT, PROJECT, SOURCE_ACCOUNT, Standin
from .state import CLOUD_PLATFORM

MINT = f"/v1/projects/-/serviceAccounts/{ACCOUNT}:generateAccessToken"
GEMINI = f"/v1/projects/{PROJECT}/locations/global/publishers/google/models/gemini-2.5-flash"
ASK = {"contents": [{"role": "user", "parts": [{"text": "Say hello."}]}]}
OTHER = "other@other-project.iam.gserviceaccount.com"
DEADLINE_S = 10.0


class Reply:
    """One answer, read to its end."""

    def __init__(self, raw: http.client.HTTPResponse) -> None:
        self.status, self.headers, self.body = raw.status, raw.headers, raw.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        assert self.headers["Content-Type"] == "application/json; charset=UTF-8"
        error: dict[str, Any] = self.json["error"]
        return error

    @property
    def reason(self) -> str:
        return str(self.error["details"][0]["reason"])


def connect(google: Standin, url: str | None = None) -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cafile=str(google.ca_file))
    return http.client.HTTPSConnection(urlsplit(url or google.url).netloc, context=context,
                                       timeout=DEADLINE_S)


def post(google: Standin, path: str, body: Any, bearer: str | None = None,
         content_type: str = "application/json", **headers: str) -> Reply:
    connection = connect(google)
    sent = {"Content-Type": content_type, **{k.replace("_", "-"): v for k, v in headers.items()}}
    if bearer is not None:
        sent["Authorization"] = f"Bearer {bearer}"
    data = body if isinstance(body, (str, bytes)) else json.dumps(body)
    try:
        connection.request("POST", path, data, sent)
        return Reply(connection.getresponse())
    finally:
        connection.close()


def form(google: Standin, **fields: str) -> Reply:
    return post(google, "/token", urlencode(fields),
                content_type="application/x-www-form-urlencoded")


def refresh(google: Standin, **changed: str) -> Reply:
    info = google.adc()
    fields = {"grant_type": "refresh_token", "client_id": info["client_id"],
              "client_secret": info["client_secret"], "refresh_token": info["refresh_token"]}
    return form(google, **{**fields, **changed})


def mint(google: Standin, bearer: str | None = None, path: str = MINT, **body: Any) -> Reply:
    return post(google, path, {"scope": [CLOUD_PLATFORM], "lifetime": "3600s", **body},
                bearer or google.issue_source_token())


def assertion(google: Standin, *, header: dict[str, Any] | None = None, **claims: Any) -> str:
    info = google.service_account_key()
    key = serialization.load_pem_private_key(info["private_key"].encode(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    now = int(google.state.now_s())
    good = {"iss": SOURCE_ACCOUNT, "sub": SOURCE_ACCOUNT, "iat": now, "exp": now + 3600,
            "aud": "https://iamcredentials.googleapis.com/"}
    kept = {name: value for name, value in {**good, **claims}.items() if value is not None}
    return jwt.encode(kept, key, info["private_key_id"], header)


def bearer_grant(google: Standin, **claims: Any) -> Reply:
    signed = assertion(google, **{"aud": "https://oauth2.googleapis.com/token", "sub": None,
                                  "scope": CLOUD_PLATFORM, **claims})
    return form(google, grant_type="urn:ietf:params:oauth:grant-type:jwt-bearer",
                assertion=signed)
