# SPDX-License-Identifier: Apache-2.0
"""Every path that a client has been seen to ask for, and the names in its queries.

A request that is not here is news: look what the client wants with it, serve it or let it be a 404 on
purpose, then write it down. `{account}` is `default` or the account's address.
"""

from __future__ import annotations

V1 = "/computeMetadata/v1"
ACCOUNTS = f"{V1}/instance/service-accounts"
ACCOUNT = f"{ACCOUNTS}/{{account}}"

SERVED: dict[str, set[str]] = {
    "/": set(),
    f"{V1}/instance": set(),
    f"{V1}/project/project-id": set(),
    f"{V1}/project/numeric-project-id": set(),
    f"{V1}/universe/universe-domain": set(),
    ACCOUNTS: set(),
    f"{ACCOUNTS}/": set(),
    f"{ACCOUNT}/": {"recursive"},
    f"{ACCOUNT}/email": set(),
    f"{ACCOUNT}/scopes": set(),
    f"{ACCOUNT}/token": {"scopes"},
}

# Answered 404 on purpose: why, and the names in the query.
REFUSED: dict[str, tuple[str, set[str]]] = {
    f"{ACCOUNT}/identity": ("an ID token is for another service than Google",
                            {"audience", "format", "licenses"}),
}
# The same for an account that is not the sandbox's.
FOREIGN = "other@my-project.iam.gserviceaccount.com"
