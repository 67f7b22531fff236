# SPDX-License-Identifier: Apache-2.0
"""cloud.google.com/go/auth for Go: credentials.DetectDefault() and an httptransport client."""

from ..facts import Facts

FACTS = Facts(
    command=("{cache}/client",),
    start=1,  # project/project-id
    per_token=1,
    tries=6,
    hasty=True,
    least=("GCE_METADATA_HOST",),
    margin_s=225,
    renews_aside=True,
    shares=True,
    identity=True,
    project=True,
    proxied=False,
    title="cloud.google.com/go/auth (Go)",
    package="cloud.google.com/go/auth",
    needs={"go": "1.26"},
)
