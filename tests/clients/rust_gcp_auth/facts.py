# SPDX-License-Identifier: Apache-2.0
"""gcp_auth for Rust: MetadataServiceAccount. It reads no variable, so it finds an endpoint only inside."""

from ..facts import Facts

FACTS = Facts(
    command=("{cache}/target/debug/client",),
    start=1,
    per_token=1,
    tries=1,
    least=(),
    title="gcp_auth (Rust)",
    role="inside",
    package="gcp_auth",
    needs={"cargo": "1.85"},
)
