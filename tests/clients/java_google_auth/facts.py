# SPDX-License-Identifier: Apache-2.0
"""google-auth-library-oauth2-http for Java: GoogleCredentials.getApplicationDefault()."""

from ..facts import Facts

FACTS = Facts(
    # No compiler of the second level: a process of this client makes a few requests.
    command=("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto",
             "-cp", "{cache}/classes:{cache}/lib/*", "Client"),
    start=1,  # the ping of /
    per_token=1,
    tries=1,
    least=("GCE_METADATA_HOST",),
    margin_s=180,  # three minutes, in which a call waits for the next token
    shares=True,
    identity=True,
    project=True,
    proxied=False,
    remembers_absence=True,
    title="google-auth-library-oauth2-http (Java)",
    package="google-auth-library-oauth2-http",
    needs={"javac": "11", "mvn": "3.6"},
)
