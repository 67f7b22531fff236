# SPDX-License-Identifier: Apache-2.0
"""Run inside a sandbox: tries to have a port in every form of bind(2). Prints what came of them as JSON.

Arguments: the port, the sandbox's own IPv4 and IPv6 address, how often.
"""

import collections
import errno
import itertools
import json
import socket
import sys

IP_FREEBIND, IPV6_FREEBIND, IPPROTO_MPTCP = 15, 78, 262
METADATA_V4, METADATA_V6 = "169.254.169.254", "fd20:ce::254"
BOTH = (0, 1)


def forms(own4, own6):
    """(address, device, device after bind, SO_REUSEADDR, SO_REUSEPORT, FREEBIND, IPV6_V6ONLY), 432 of them."""
    v4 = ["0.0.0.0", "127.0.0.1", METADATA_V4, own4]
    v6 = ["::", "::1", METADATA_V6, own6, "::ffff:0.0.0.0", f"::ffff:{METADATA_V4}"]
    devices = ["", "lo", "eth0"]
    yield from itertools.product(v4, devices, [0], BOTH, BOTH, BOTH, [0])
    yield from itertools.product(v6, devices, [0], BOTH, BOTH, BOTH, BOTH)
    yield from itertools.product(v6, devices[1:], [1], BOTH, BOTH, [0], [0])


def open_and_bind(port, form, protocol=0):
    address, device, late, reuse_address, reuse_port, freebind, only = form
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse_address)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, reuse_port)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
        if freebind:
            level, option = ((socket.IPPROTO_IPV6, IPV6_FREEBIND) if family == socket.AF_INET6
                             else (socket.IPPROTO_IP, IP_FREEBIND))
            made.setsockopt(level, option, 1)
        if device and not late:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
        made.bind((address, port))
        if device and late:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    except BaseException:
        made.close()
        raise
    return made


def main():
    port, own4, own6, times = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    tried = [(form, protocol) for form in forms(own4, own6) for protocol in (0,)]
    tried += [(form, IPPROTO_MPTCP) for form in forms(own4, own6) if not form[5]]
    outcomes, bound = collections.Counter(), []
    for _ in range(times):
        for form, protocol in tried:
            try:
                open_and_bind(port, form, protocol).close()
            except OSError as error:
                outcomes[errno.errorcode.get(error.errno, str(error.errno))] += 1
            else:
                bound.append([*form, protocol])
    print(json.dumps({"forms": len(list(forms(own4, own6))), "tried": len(tried) * times,
                      "outcomes": outcomes, "bound": bound}))


main()
