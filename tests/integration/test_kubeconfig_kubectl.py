# SPDX-License-Identifier: Apache-2.0
"""A real kubectl reads the kubeconfig that crosses, and reaches a server with it.

Always in a network namespace with loopback and no way out, with an /etc/hosts of its own in which the host
has the name that sandboxes know it by.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.google import ca as authorities

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("POSTERN_BUILD", ROOT / "build")) / "tests/integration/reduce_kubeconfig"
KUBECTL = shutil.which("kubectl")
NAMESPACE = ["unshare", "--net", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
PORT = 6443
TOKEN = "a-token-of-the-test"

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="no kubectl; run scripts/bootstrap")


class Cluster:
    """An authority, the server certificate for some names, and a kubeconfig of the operator's."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.home = directory / "home"
        self.home.mkdir()
        self.hosts = directory / "hosts"
        self.hosts.write_text("127.0.0.1 localhost host.docker.internal\n")
        self.authority = authorities.make_authority(directory / "ca")
        self.config = directory / "config"
        self.creds = directory / "creds"
        self.creds.mkdir()

    def write(self, cluster: dict, user: dict) -> None:
        """As an operator's file is: more contexts than the one, the CA as a file."""
        self.config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "mine",
            "clusters": [{"name": "c", "cluster": {"certificate-authority": str(self.authority.ca_file), **cluster}},
                         {"name": "other", "cluster": {"server": "https://other.example.com"}}],
            "users": [{"name": "u", "user": user}, {"name": "other", "user": {"token": "not-to-cross"}}],
            "contexts": [{"name": "mine", "context": {"cluster": "c", "user": "u", "namespace": "team-a"}},
                         {"name": "other", "context": {"cluster": "other", "user": "other"}}],
        }, indent=1))

    def reduce(self, *arguments: str) -> dict:
        done = subprocess.run([TOOL, self.config, self.creds, *arguments], capture_output=True, text=True,
                              timeout=30, check=False)
        assert done.returncode == 0, done.stderr
        (self.creds / "kubeconfig").write_text(done.stdout)
        return json.loads(done.stdout)

    def kubectl(self, *arguments: str) -> dict:
        inside = 'ip link set lo up && mount --bind "$1" /etc/hosts && shift && exec "$@"'
        done = subprocess.run(
            [*NAMESPACE, "sh", "-c", inside, "sh", self.hosts, sys.executable, "-B",
             ROOT / "tests/integration/api_server.py", self.authority.cert_file, self.authority.key_file,
             str(PORT), KUBECTL, "--request-timeout=10s", *arguments],
            env={"PATH": os.environ["PATH"], "HOME": str(self.home), "KUBECONFIG": str(self.creds / "kubeconfig")},
            capture_output=True, text=True, timeout=90, stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        assert said["routes"] == ""
        return said

    def get(self) -> dict:
        """The one request that is asked for; Google's kubectl makes others before it."""
        said = self.kubectl("get", "--raw", "/asked-for")
        assert said["status"] == 0, said["err"]
        asked = [r for r in said["requests"] if r["path"] == "/asked-for"]
        assert len(asked) == 1, said
        return asked[0]


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_kubectl_reads_one_context_with_its_ca_and_its_token(cluster: Cluster) -> None:
    cluster.write({"server": f"https://127.0.0.1:{PORT}"}, {"token": TOKEN})
    written = cluster.reduce()
    said = cluster.kubectl("config", "view", "--raw", "-o", "json")
    assert said["status"] == 0, said["err"]
    read = json.loads(said["out"])
    for key in ("clusters", "users", "contexts", "current-context"):
        assert read[key] == written[key]
    assert [c["name"] for c in read["contexts"]] == ["mine"]
    embedded = base64.b64decode(read["clusters"][0]["cluster"]["certificate-authority-data"])
    assert embedded == cluster.authority.ca_file.read_bytes()
    assert "not-to-cross" not in said["out"]
    namespace = cluster.kubectl("config", "view", "--minify", "-o", "jsonpath={..namespace}")
    assert namespace["out"] == "team-a"


def test_a_server_on_loopback_is_reached_under_the_hosts_name_and_verified(cluster: Cluster) -> None:
    """The certificate has no host.docker.internal in it."""
    cluster.write({"server": f"https://127.0.0.1:{PORT}"}, {"token": TOKEN})
    written = cluster.reduce()
    request = cluster.get()
    assert request["authorization"] == f"Bearer {TOKEN}"
    assert request["server_name"] == "localhost"
    assert request["host"] == f"host.docker.internal:{PORT}"
    del written["clusters"][0]["cluster"]["tls-server-name"]
    (cluster.creds / "kubeconfig").write_text(json.dumps(written))
    said = cluster.kubectl("get", "--raw", "/asked-for")
    assert said["status"] != 0 and "x509: certificate is valid for" in said["err"]


def test_a_declared_server_name_is_kept(cluster: Cluster) -> None:
    cluster.write({"server": f"https://localhost:{PORT}", "tls-server-name": "oauth2.googleapis.com"},
                  {"token": TOKEN})
    cluster.reduce()
    request = cluster.get()
    assert request["server_name"] == "oauth2.googleapis.com"
    assert request["authorization"] == f"Bearer {TOKEN}"


def test_a_token_file_that_is_replaced_is_read_anew(cluster: Cluster) -> None:
    source = cluster.directory / "token"
    source.write_text("first\n")
    cluster.write({"server": f"https://localhost:{PORT}"}, {"tokenFile": "token"})
    cluster.reduce()
    for token in ("first", "second"):
        beside = cluster.creds / "token.new"
        beside.write_text(token)
        beside.rename(cluster.creds / "token")
        assert cluster.get()["authorization"] == f"Bearer {token}"


def test_a_client_certificate_crosses_only_where_it_is_allowed(cluster: Cluster) -> None:
    cluster.write({"server": f"https://localhost:{PORT}"},
                  {"client-certificate": str(cluster.authority.cert_file),
                   "client-key": str(cluster.authority.key_file)})
    refused = subprocess.run([TOOL, cluster.config, cluster.creds], capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "--allow-admin-kubeconfig" in refused.stderr
    written = cluster.reduce("admin")
    user = written["users"][0]["user"]
    x509.load_pem_x509_certificate(base64.b64decode(user["client-certificate-data"]))
    key = serialization.load_pem_private_key(base64.b64decode(user["client-key-data"]), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    said = cluster.kubectl("config", "view", "--raw", "-o", "json")
    assert json.loads(said["out"])["users"] == written["users"]
