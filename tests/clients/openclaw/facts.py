# SPDX-License-Identifier: Apache-2.0
"""OpenClaw, with its google-vertex provider, on the Node that it demands."""

from ..facts import AgentFacts

FACTS = AgentFacts(
    command=("{cache}/node_modules/.bin/node", "{cache}/node_modules/openclaw/openclaw.mjs",
             "agent", "exec", "--model", "google-vertex/gemini-2.5-flash", "--thinking", "off",
             "--code-mode", "direct"),
    start=0,
    per_token=1,
    tries=0,
    least=("GCE_METADATA_HOST",),
    margin_s=300,
    preset="openclaw",
    reads=("read", "path"),
    gone="connection refused by the provider endpoint",
    persists=True,
    renews=False,
    tells=False,  # what the endpoint says is cut out as if it were a token
    title="OpenClaw",
    role="agent",
    package="openclaw",
    must_set="`--agent openclaw`",
    cannot="it keeps a token for four minutes whatever its end, so its profile needs a `lifetime` of 12 minutes",
    application={
        "GOOGLE_VERTEX_BASE_URL": "{google}",
        "OPENCLAW_CONFIG_PATH": "{here}/openclaw.json",
        "NODE_COMPILE_CACHE": "{cache}/compiled",
    },
)
