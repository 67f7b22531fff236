# SPDX-License-Identifier: Apache-2.0
"""@anthropic-ai/vertex-sdk for Node: AnthropicVertex."""

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
    application={"CLOUD_ML_REGION": "global", "ANTHROPIC_VERTEX_PROJECT_ID": "my-project"},
    title="@anthropic-ai/vertex-sdk (Node)",
    package="@anthropic-ai/vertex-sdk",
    needs={"node": "18"},
    tells=False,
    denied=3,
    must_set="`CLOUD_ML_REGION`, `ANTHROPIC_VERTEX_PROJECT_ID`",
    auth_of="node_google_auth_library",
)
