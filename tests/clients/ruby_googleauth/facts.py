# SPDX-License-Identifier: Apache-2.0
"""googleauth for Ruby, as the release of Debian or Ubuntu has it."""

from ..facts import Facts

FACTS = Facts(
    command=("/usr/bin/ruby", "{here}/client.rb"),
    start=0,
    per_token=1,
    tries=1,
    least=(),
    margin_s=60,
    tells=False,  # its words for a 403 are always the same
    # Read by the newer versions, which ask no endpoint where these are not.
    application={"K_SERVICE": "sandbox", "K_REVISION": "1", "K_CONFIGURATION": "sandbox"},
    title="googleauth (Ruby)",
    version=("/usr/bin/dpkg-query", "--show", "ruby-googleauth"),
    needs={"/usr/bin/ruby": "2.7"},
    address="169.254.169.254:80",
    cannot="0.13 reads no variable: 169.254.169.254 is built in; newer ones read `GCE_METADATA_HOST`,"
           " and only with `K_SERVICE`, `K_REVISION` and `K_CONFIGURATION` set",
)
