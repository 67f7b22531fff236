# SPDX-License-Identifier: Apache-2.0
"""The gcloud that tests run: the machine's own, without a way out, or a script that prints what one did."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.google.standin import SOURCE_ACCOUNT, Standin

from .namespaces import Namespace

RECORDED = Path(__file__).parents[1] / "vectors" / "gcloud" / "config-helper.json"
CONFIGURATION = """[core]
account = {account}
custom_ca_certs_file = {ca_file}
check_gce_metadata = false
disable_usage_reporting = true
disable_file_logging = true
[auth]
credential_file_override = {key}
token_host = {url}/token
impersonate_service_account = {impersonated}
[survey]
disable_prompts = true
[component_manager]
disable_update_check = true
"""


def program(directory: Path, body: str) -> Path:
    """A program of the test's own."""
    path = directory / "program"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o700)
    return path


def config_helper(directory: Path, account: str, token: str, expiry: str) -> Path:
    """A gcloud as far as it is asked, and a line for each run."""
    answer = RECORDED.read_text()
    for word, value in {"ACCOUNT": account, "TOKEN": token, "EXPIRY": expiry,
                        "DIRECTORY": str(directory)}.items():
        answer = answer.replace(word, value)
    return program(directory, f"""
[ "$*" = "config config-helper --format=json --min-expiry=10m" ] || exit 2
[ "${{CLOUDSDK_AUTH_IMPERSONATE_SERVICE_ACCOUNT-unset}}" = "" ] || exit 3
echo run >> {directory}/runs
cat <<'END'
{answer}END""")


def may_make_namespaces() -> bool:
    """Whether the real one can be kept from every network."""
    tools = (shutil.which(name) for name in ("ip", "nsenter", "unshare"))
    return os.geteuid() == 0 and all(tools) and subprocess.run(
        ["unshare", "--net", "true"], stdin=subprocess.DEVNULL, capture_output=True,
        check=False).returncode == 0


def which() -> tuple[str | None, str]:
    """The program to run, None for the recorded one; and what the summary says of it."""
    found = shutil.which("gcloud")
    if found is None:
        return None, "gcloud: none is installed, the recorded script was run"
    if not may_make_namespaces():
        return None, f"gcloud: {found} cannot be shut in a namespace, the recorded script was run"
    return found, f"gcloud: the real one was run, {found}"


@dataclass
class Login:
    """A gcloud with `SOURCE_ACCOUNT`'s login, its Google, and what the broker needs for it."""

    program: Path
    google: Standin
    env: dict[str, str]


@contextmanager
def login(impersonated: str) -> Iterator[Login]:
    """One whose configuration impersonates another account, which the broker is to hide.

    The real one runs in a network namespace that has loopback only, and this thread with it.
    """
    found, _ = which()
    with ExitStack() as stack:
        if found is not None:
            stack.enter_context(stack.enter_context(Namespace()).entered())
        google = stack.enter_context(Standin())
        if found is None:
            token = google.issue_source_token(SOURCE_ACCOUNT)
            yield Login(config_helper(google.directory, SOURCE_ACCOUNT, token,
                                      "2099-01-01T00:00:00Z"),
                        google, {"CLOUDSDK_AUTH_IMPERSONATE_SERVICE_ACCOUNT": impersonated})
            return
        home = google.directory / "gcloud"
        (home / "configurations").mkdir(parents=True)
        key = google.write_service_account(token_uri=f"{google.url}/token")
        (home / "configurations" / "config_default").write_text(CONFIGURATION.format(
            account=SOURCE_ACCOUNT, ca_file=google.ca_file, key=key, url=google.url,
            impersonated=impersonated))
        (home / "active_config").write_text("default")
        yield Login(Path(found), google, {"CLOUDSDK_CONFIG": str(home)})
