# SPDX-License-Identifier: Apache-2.0
"""The kubeconfig as the sandbox of a real engine has it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from .deadline import eventually
from .launch import Place

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: mine
clusters: [{name: c, cluster: {server: "https://10.9.8.7:6443"}}]
users: [{name: u, user: {tokenFile: token}}, {name: admin, user: {token: of-the-admin-of-all}}]
contexts: [{name: mine, context: {cluster: c, user: u}}, {name: other, context: {cluster: c, user: admin}}]
"""


def write(place: Place) -> Path:
    """The operator's, with a token file beside it."""
    path = place.directory / "kubeconfig"
    path.write_text(KUBECONFIG)
    (place.directory / "token").write_text("first-token\n")
    return path


def test_one_context_crosses_read_only_and_readable_by_the_agent(place: Place) -> None:
    ran = place.sh("cat $KUBECONFIG; touch /creds/x 2>/dev/null && echo writable; id -u >&2",
                   options=["--kubeconfig", write(place)])
    assert ran.err.endswith("1000\n")
    made = json.loads(ran.out)
    assert [user["name"] for user in made["users"]] == ["u"]
    assert "of-the-admin" not in ran.out and "first-token" not in ran.out
    assert place.is_clean()


def test_a_token_that_is_renewed_reaches_the_sandbox(place: Place) -> None:
    run = place.start_sh("while :; do cat $(dirname $KUBECONFIG)/token* >seen.new; mv seen.new seen;"
                         " sleep 0.2; done",
                         options=["--kubeconfig", write(place), "--workspace", place.workspace])
    assert place.workspace_file("seen") == "first-token"
    renewed = place.directory / "renewed"
    renewed.write_text("second-token\n")
    os.replace(renewed, place.directory / "token")
    eventually("the new token", lambda: place.workspace_file("seen") == "second-token", 10.0)
    run.signal(signal.SIGTERM)
    assert run.wait().status == 143
    assert place.is_clean()


def test_a_refused_kubeconfig_starts_nothing(place: Place) -> None:
    path = place.directory / "kubeconfig"
    path.write_text(KUBECONFIG.replace("tokenFile: token", "exec: {command: gcloud}"))
    ran = place.run("true", options=["--kubeconfig", path])
    assert ran.status == 3
    assert not place.broker.audit_of("session.open")
