# SPDX-License-Identifier: Apache-2.0
"""google-cloud-auth for Rust: credentials::Builder and access_token()."""

from ..facts import Facts

FACTS = Facts(
    command=("{cache}/target/debug/client",),
    start=0,
    per_token=1,
    tries=1,
    least=("GCE_METADATA_HOST",),
    margin_s=240,
    shares=True,
    renews_aside=True,
    pause_s=10,
    proxied=False,
    title="google-cloud-auth (Rust)",
    package="google-cloud-auth",
    needs={"cargo": "1.91"},
)
