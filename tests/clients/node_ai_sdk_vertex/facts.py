# SPDX-License-Identifier: Apache-2.0
"""@ai-sdk/google-vertex for Node: createVertex()."""

from ..facts import Facts

FACTS = Facts(
    command=("node", "{here}/../serve/serve.mjs", "{cache}/client.mjs"),
    start=1,  # project/project-id
    per_token=1,
    tries=4,
    least=("GCE_METADATA_HOST",),
    margin_s=300,
    shares=True,
    streams=True,
    application={"GOOGLE_VERTEX_PROJECT": "my-project", "GOOGLE_VERTEX_LOCATION": "global"},
    title="@ai-sdk/google-vertex (Node)",
    package="@ai-sdk/google-vertex",
    needs={"node": "18"},
    must_set="`GOOGLE_VERTEX_PROJECT`, `GOOGLE_VERTEX_LOCATION`",
    auth_of="node_google_auth_library",
)
