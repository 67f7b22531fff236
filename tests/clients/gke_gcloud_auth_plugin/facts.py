# SPDX-License-Identifier: Apache-2.0
"""gke-gcloud-auth-plugin with the credentials of Go, a process for each call."""

from ..facts import Facts

FACTS = Facts(
    command=("bash", "{here}/../serve/serve.sh", "{here}/../gcloud/client.sh", "gke-gcloud-auth-plugin"),
    start=0,
    per_token=2,
    tries=24,
    least=("GCE_METADATA_HOST",),
    application={"PATH": "/usr/bin:/bin"},
    at_once=8,
    title="gke-gcloud-auth-plugin",
    role="tool",
    version=("gke-gcloud-auth-plugin", "--version"),
    where_installed="gke-gcloud-auth-plugin",
    must_set="`--use_application_default_credentials`",
    denied=4,
    proxied=False,
    slow=True,
)
