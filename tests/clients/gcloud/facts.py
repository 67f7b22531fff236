# SPDX-License-Identifier: Apache-2.0
"""gcloud: `gcloud auth print-access-token`, a process for each call."""

from ..facts import Facts

FACTS = Facts(
    command=("bash", "{here}/../serve/serve.sh", "{here}/client.sh", "gcloud"),
    start=5,
    per_token=2,
    tries=5,
    least=("GCE_METADATA_ROOT",),
    refused=1,  # it asks for an ID token, too
    project=True,
    application={"PATH": "/usr/bin:/bin", "CLOUDSDK_CORE_DISABLE_PROMPTS": "1"},
    at_once=2,
    remembers_absence=True,  # for ten minutes, in its folder
    title="gcloud",
    role="tool",
    version=("gcloud", "--version"),
    where_installed="gcloud",
    cannot="without an endpoint at its first look it looks for none for ten minutes, or until"
           " `~/.config/gcloud/gce` is removed; it keeps tokens in that folder and in its logs",
    must_set="`project_number` in the profile",
    slow=True,
)
