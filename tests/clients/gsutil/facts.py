# SPDX-License-Identifier: Apache-2.0
"""gsutil: `gsutil ls` of a bucket, a process for each call."""

from ..facts import Facts

FACTS = Facts(
    command=("bash", "{here}/../serve/serve.sh", "{here}/../gcloud/client.sh", "gsutil"),
    start=2,
    per_token=10,
    tries=1,
    least=("GCE_METADATA_ROOT",),
    application={"PATH": "/usr/bin:/bin", "CLOUDSDK_CORE_DISABLE_PROMPTS": "1"},
    at_once=2,
    tells=False,  # it says "Forbidden", after a trace of its stack
    remembers_absence=True,
    title="gsutil",
    role="tool",
    version=("gsutil", "version"),
    where_installed="gsutil",
    cannot="it keeps tokens in `~/.gsutil`",
    must_set="`project_number` in the profile",
    slow=True,
)
