# SPDX-License-Identifier: Apache-2.0
"""@google/genai for Node, in its Vertex AI mode."""

from ..facts import Facts

FACTS = Facts(
    command=("node", "{here}/../serve/serve.mjs", "{cache}/client.mjs"),
    start=0,
    per_token=1,
    tries=4,
    least=("GCE_METADATA_HOST",),
    margin_s=300,
    shares=True,
    streams=True,
    title="@google/genai (Node)",
    package="@google/genai",
    needs={"node": "18"},
    auth_of="node_google_auth_library",
    must_set="`GOOGLE_GENAI_USE_VERTEXAI=true`, `GOOGLE_CLOUD_PROJECT`, `GOOGLE_CLOUD_LOCATION`",
    application={
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_CLOUD_PROJECT": "my-project",
        "GOOGLE_CLOUD_LOCATION": "global",
    },
)
