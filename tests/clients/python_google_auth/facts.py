# SPDX-License-Identifier: Apache-2.0
"""google-auth for Python: google.auth.default() and an AuthorizedSession."""

from ..facts import Facts

FACTS = Facts(
    command=("{cache}/venv/bin/python", "-B", "{here}/../serve/serve.py", "{here}/client.py"),
    start=2,  # the ping of /, project/project-id
    per_token=2,  # the account's description comes before each token
    tries=5,
    least=("GCE_METADATA_HOST", "GCE_METADATA_IP"),
    margin_s=225,
    identity=True,
    project=True,
    foreign=True,
    title="google-auth (Python)",
    package="google-auth",
    needs={"/usr/bin/python3": "3.10"},
)
