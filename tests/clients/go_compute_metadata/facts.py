# SPDX-License-Identifier: Apache-2.0
"""cloud.google.com/go/compute/metadata for Go, and nothing over it: it keeps no token."""

from ..facts import Facts

FACTS = Facts(
    command=("{cache}/client",),
    start=1,  # project/project-id
    per_token=1,
    tries=6,
    hasty=True,
    least=("GCE_METADATA_HOST",),
    identity=True,
    foreign=True,
    project=True,
    proxied=False,
    title="cloud.google.com/go/compute/metadata (Go)",
    package="cloud.google.com/go/compute/metadata",
    needs={"go": "1.26"},
)
