# SPDX-License-Identifier: Apache-2.0
"""Anthropic's Claude Code, with models on Vertex AI."""

from ..facts import AgentFacts

FACTS = AgentFacts(
    command=("{cache}/node_modules/@anthropic-ai/claude-code-linux-x64/claude", "--print"),
    start=3,  # the first time in a home it tries three models at once
    per_token=1,
    tries=12,
    least=("GCE_METADATA_HOST",),
    margin_s=300,
    denied=3,
    preset="claude-code",
    reads=("Read", "file_path"),
    title="Claude Code",
    role="agent",
    package="@anthropic-ai/claude-code",
    must_set="`--agent claude-code`",
    application={"ANTHROPIC_VERTEX_BASE_URL": "{google}/v1"},
)
