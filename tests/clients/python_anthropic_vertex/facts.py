# SPDX-License-Identifier: Apache-2.0
"""anthropic[vertex] for Python: AnthropicVertex."""

from ..facts import Facts

FACTS = Facts(
    command=("{cache}/venv/bin/python", "-B", "{here}/../serve/serve.py", "{here}/client.py"),
    start=2,  # the ping of /, project/project-id
    per_token=2,  # the account's description comes before each token
    tries=5,
    least=("GCE_METADATA_HOST", "GCE_METADATA_IP"),
    margin_s=225,
    streams=True,
    application={"CLOUD_ML_REGION": "global", "ANTHROPIC_VERTEX_PROJECT_ID": "my-project"},
    title="anthropic[vertex] (Python)",
    package="anthropic",
    needs={"/usr/bin/python3": "3.10"},
    must_set="`CLOUD_ML_REGION`, `ANTHROPIC_VERTEX_PROJECT_ID`",
    again_at_once=True,
    auth_of="python_google_auth",
)
