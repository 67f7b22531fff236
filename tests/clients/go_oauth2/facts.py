# SPDX-License-Identifier: Apache-2.0
"""golang.org/x/oauth2/google for Go: google.FindDefaultCredentials() and oauth2.NewClient()."""

from ..facts import Facts

FACTS = Facts(
    command=("{cache}/client",),
    start=1,  # project/project-id
    per_token=1,
    tries=6,
    hasty=True,
    least=("GCE_METADATA_HOST",),
    margin_s=10,
    shares=True,
    foreign=True,
    project=True,
    proxied=False,
    remembers_absence=True,  # no project
    title="golang.org/x/oauth2/google (Go)",
    package="golang.org/x/oauth2",
    needs={"go": "1.26"},
)
