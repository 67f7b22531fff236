# SPDX-License-Identifier: Apache-2.0
"""A request as read from the wire, and its routing to a kind."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote

from .jwt import strict_json

_IAM = re.compile(r"/v1/projects/([^/]+)/serviceAccounts/([^/:]+)"
                  r":(generateAccessToken|testIamPermissions)")
_MODEL = re.compile(r"/(?:v1|v1beta1)/projects/([^/]+)/locations/([a-z0-9-]+)"
                    r"/publishers/(google|anthropic)/models/([^/:]+):([A-Za-z]+)")
_OBJECTS = re.compile(r"/storage/v1/b/([^/]+)/o")
_METADATA = "/computeMetadata/v1/"
_GETS = {
    "/subject-token": "subjectToken",
    f"{_METADATA}universe/universe-domain": "metadataUniverse",
    f"{_METADATA}instance/service-accounts/default/email": "metadataEmail",
    f"{_METADATA}instance/service-accounts/default/token": "metadataToken",
}
_VERBS = {
    "google": ("generateContent", "streamGenerateContent", "countTokens"),
    "anthropic": ("rawPredict", "streamRawPredict"),
}

# Which API each kind is one of, where a configuration names an address for each.
APIS = {"token": "oauth2", "sts": "sts", "generateAccessToken": "iamcredentials",
        "testIamPermissions": "iam"}


@dataclass
class Request:
    """One whole request."""

    method: str
    target: str
    version: str
    headers: dict[str, str]  # names in lower case, repeated ones joined
    body: bytes
    kind: str = "other"
    parts: tuple[str, ...] = ()  # what the route's pattern caught, percent-decoded
    principal: str | None = field(default=None)

    def __post_init__(self) -> None:
        path = self.path
        if self.method == "GET":
            self.kind = _GETS.get(path, "other")
            if match := _OBJECTS.fullmatch(path):
                self.kind, self.parts = "listObjects", (unquote(match[1]),)
        if self.method != "POST":
            return
        if path == "/token":
            self.kind = "token"
        elif path == "/v1/token":
            self.kind = "sts"
        elif match := _IAM.fullmatch(path):
            self.kind = match[3]
            self.parts = (unquote(match[1]), unquote(match[2]))
        elif (match := _MODEL.fullmatch(path)) and match[5] in _VERBS[match[3]]:
            self.kind = match[5]
            self.parts = (unquote(match[1]), match[2], unquote(match[4]))

    def arrive_at(self, api: str) -> None:
        """Of what another API has it is no request there."""
        if APIS.get(self.kind) != api:
            self.kind, self.parts = "other", ()

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> dict[str, list[str]]:
        """The query's values."""
        return parse_qs(self.target.partition("?")[2], keep_blank_values=True)

    @property
    def media_type(self) -> str:
        """Content-Type without its parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def bearer(self) -> str | None:
        """The bearer token (RFC 6750 2.1), if there is one."""
        match = re.fullmatch(r"Bearer +([A-Za-z0-9._~+/-]+=*)",
                             self.headers.get("authorization", ""), re.IGNORECASE)
        return match[1] if match else None

    def form(self) -> list[tuple[str, str]]:
        """The body as a form; ValueError when it is none."""
        return parse_qsl(self.body.decode("utf-8"), keep_blank_values=True, strict_parsing=True)

    def json(self) -> Any:
        """The body as JSON with unique names; ValueError when it is none."""
        return strict_json(self.body)

    def recorded_body(self) -> Any:
        """The body as a test wants to see it."""
        try:
            if self.media_type == "application/x-www-form-urlencoded":
                return dict(self.form())
            return self.json()
        except ValueError:
            return self.body.decode("utf-8", "replace")
