# SPDX-License-Identifier: Apache-2.0
"""google-auth-library for Node: GoogleAuth, getClient() and request()."""

from ..facts import Facts

FACTS = Facts(
    command=("node", "{here}/../serve/serve.mjs", "{cache}/client.mjs"),
    start=1,  # project/project-id
    per_token=1,
    tries=4,
    least=("GCE_METADATA_HOST",),
    margin_s=300,
    shares=True,
    remembers_absence=True,  # no project
    identity=True,
    project=True,
    foreign=True,
    title="google-auth-library, gcp-metadata (Node)",
    package="google-auth-library",
    needs={"node": "18"},
)
