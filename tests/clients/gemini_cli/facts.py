# SPDX-License-Identifier: Apache-2.0
"""Google's Gemini CLI, in its Vertex AI mode."""

from ..facts import AgentFacts

FACTS = AgentFacts(
    command=("node", "{cache}/node_modules/@google/gemini-cli/bundle/gemini.js",
             "--model", "gemini-2.5-flash", "--prompt"),
    start=0,
    per_token=1,
    tries=0,
    least=("GCE_METADATA_HOST",),
    margin_s=300,
    preset="gemini-cli",
    reads=("read_file", "file_path"),
    persists=True,
    title="Gemini CLI",
    role="agent",
    package="@google/gemini-cli",
    needs={"node": "20"},
    must_set="`--agent gemini-cli`",
    application={"GOOGLE_VERTEX_BASE_URL": "{google}"},
)
