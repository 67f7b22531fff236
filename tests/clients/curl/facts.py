# SPDX-License-Identifier: Apache-2.0
"""curl: the requests of the README."""

from ..facts import Facts

FACTS = Facts(
    command=("bash", "{here}/../serve/serve.sh", "{here}/client.sh"),
    start=1,  # project/project-id
    per_token=1,
    tries=4,
    least=("GCE_METADATA_HOST",),
    identity=True,
    project=True,
    foreign=True,
    title="curl",
    role="tool",
    version=("curl", "--version"),
    needs={"curl": "7.76"},  # --fail-with-body
    application={"PATH": "/usr/bin:/bin"},
)
