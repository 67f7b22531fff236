# SPDX-License-Identifier: Apache-2.0
"""google-genai for Python, in its Vertex AI mode."""

from ..facts import Facts

FACTS = Facts(
    command=("{cache}/venv/bin/python", "-B", "{here}/../serve/serve.py", "{here}/client.py"),
    start=2,  # the ping of /, project/project-id
    per_token=2,  # the account's description comes before each token
    tries=5,
    least=("GCE_METADATA_HOST", "GCE_METADATA_IP"),
    margin_s=225,
    streams=True,
    application={
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_CLOUD_PROJECT": "my-project",
        "GOOGLE_CLOUD_LOCATION": "global",
    },
    title="google-genai (Python)",
    package="google-genai",
    needs={"/usr/bin/python3": "3.10"},
    must_set="`GOOGLE_GENAI_USE_VERTEXAI=true`, `GOOGLE_CLOUD_PROJECT`, `GOOGLE_CLOUD_LOCATION`",
    auth_of="python_google_auth",
)
