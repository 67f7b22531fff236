# SPDX-License-Identifier: Apache-2.0
"""opencode, with its google-vertex provider.

The package is the program itself: opencode-ai is only what chooses among the builds of twelve platforms, of
which no registry needs to have all. This one runs on every x64 processor.
"""

from ..facts import AgentFacts

FACTS = AgentFacts(
    command=("{cache}/node_modules/opencode-linux-x64-baseline/bin/opencode",
             "run", "--model", "google-vertex/gemini-2.5-flash"),
    start=0,
    per_token=1,
    tries=0,
    least=("GCE_METADATA_HOST",),
    margin_s=300,
    denied=2,  # for the answer, and for a title of the session
    preset="opencode",
    reads=("read", "filePath"),
    title="opencode",
    role="agent",
    package="opencode-linux-x64-baseline",
    must_set="`--agent opencode`",
    application={"GOOGLE_VERTEX_BASE_URL": "{google}", "OPENCODE_CONFIG": "{here}/opencode.json"},
)
