# SPDX-License-Identifier: Apache-2.0
"""Run inside a sandbox: tries to get an answer from the metadata addresses in every way past the local one.
Prints as JSON what came of each: the first bytes of the answer, or the name of the error.

Arguments, as JSON: v4, v6 (the sandbox's own addresses), to_v4, to_v6 (lists), patience_s (a try).
"""

import concurrent.futures
import errno
import json
import socket
import struct
import sys

IP_UNICAST_IF, IPV6_UNICAST_IF, SO_BINDTOIFINDEX, SO_DONTROUTE = 50, 76, 62, 5
IPPROTO_MPTCP, IP_PKTINFO, IPV6_PKTINFO, IPV6_RTHDR = 262, 8, 50, 57
REQUEST = b"GET / HTTP/1.0\r\nHost: metadata.google.internal\r\nMetadata-Flavor: Google\r\n\r\n"
ARGUMENTS = json.loads(sys.argv[1])
OWN = {socket.AF_INET: ARGUMENTS["v4"], socket.AF_INET6: ARGUMENTS["v6"]}
ETH0 = socket.if_nametoindex("eth0")


def device(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")


def by_index(sock):
    sock.setsockopt(socket.SOL_SOCKET, SO_BINDTOIFINDEX, ETH0)


def source(sock):
    sock.bind((OWN[sock.family], 0))


def mapped_source(sock):
    sock.bind((f"::ffff:{OWN[socket.AF_INET]}", 0))


def dns_source(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind((OWN[sock.family], 53))


def unicast_if(sock):
    level, option = ((socket.IPPROTO_IPV6, IPV6_UNICAST_IF) if sock.family == socket.AF_INET6
                     else (socket.IPPROTO_IP, IP_UNICAST_IF))
    sock.setsockopt(level, option, struct.pack("!I", ETH0))


def dont_route(sock):
    sock.setsockopt(socket.SOL_SOCKET, SO_DONTROUTE, 1)


def source_route(sock):
    gateway = socket.inet_aton(OWN[socket.AF_INET].rsplit(".", 1)[0] + ".1")
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, b"\x83\x0b\x04" + gateway + gateway + b"\x00")


def routing_header(sock):
    gateway = socket.inet_pton(socket.AF_INET6, OWN[socket.AF_INET6].rsplit(":", 1)[0] + ":1")
    header = struct.pack("BBBBBBH", 0, 2, 4, 0, 0, 0, 0) + gateway
    sock.setsockopt(socket.IPPROTO_IPV6, IPV6_RTHDR, header)


WAYS = {
    "plain": [], "device": [device], "index": [by_index], "device source": [device, source], "source": [source],
    "device dns source": [device, dns_source], "dns source": [dns_source], "unicast": [unicast_if],
    "unicast source": [unicast_if, source], "dontroute": [dont_route], "dontroute device": [dont_route, device],
    "source device": [source, device],
}
V4_WAYS = {"source route": [source_route], "source route device": [source_route, device]}
V6_WAYS = {"routing header": [routing_header], "routing header device": [routing_header, device]}


def opened(family, kind, steps, protocol=0):
    sock = socket.socket(family, kind, protocol)
    sock.settimeout(ARGUMENTS["patience_s"])
    try:
        for step in steps:
            step(sock)
    except BaseException:
        sock.close()
        raise
    return sock


def asked(sock):
    sock.sendall(REQUEST)
    return sock.recv(512)


def tcp(family, to, port, steps, protocol=0):
    with opened(family, socket.SOCK_STREAM, steps, protocol) as sock:
        sock.connect((to, port))
        return asked(sock)


def mapped(_family, to, port, steps):
    with opened(socket.AF_INET6, socket.SOCK_STREAM, steps) as sock:
        sock.connect((f"::ffff:{to}", port))
        return asked(sock)


def scoped(family, to, port, steps):
    with opened(family, socket.SOCK_STREAM, steps) as sock:
        sock.connect((to, port, 0, ETH0))
        return asked(sock)


def mptcp(family, to, port, steps):
    return tcp(family, to, port, steps, IPPROTO_MPTCP)


def fast_open(family, to, port, steps):
    with opened(family, socket.SOCK_STREAM, steps) as sock:
        sock.sendto(REQUEST, socket.MSG_FASTOPEN, (to, port))
        return sock.recv(512)


def through_dns(family, to, port, steps):
    """Connected to the port that is open, then elsewhere."""
    with opened(family, socket.SOCK_STREAM, steps) as sock:
        try:
            sock.connect((to, 53))
        except OSError:
            pass
        unspecified = struct.pack("H", socket.AF_UNSPEC) + b"\0" * 26
        libc_connect(sock, unspecified)
        sock.connect((to, port))
        return asked(sock)


def libc_connect(sock, address):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.connect(sock.fileno(), address, len(address)):
        raise OSError(ctypes.get_errno(), "connect")


def udp(family, to, port, steps):
    with opened(family, socket.SOCK_DGRAM, steps) as sock:
        sock.sendto(b"GET /", (to, port))
        return sock.recv(512)


def udp_through_dns(family, to, port, steps):
    with opened(family, socket.SOCK_DGRAM, steps) as sock:
        sock.connect((to, 53))
        sock.sendto(b"GET /", (to, port))
        return sock.recv(512)


def packet_info(family, to, port, steps):
    if family == socket.AF_INET:
        control = (socket.IPPROTO_IP, IP_PKTINFO,
                   struct.pack("I4s4s", ETH0, socket.inet_aton(OWN[family]), b"\0" * 4))
    else:
        control = (socket.IPPROTO_IPV6, IPV6_PKTINFO,
                   socket.inet_pton(family, OWN[family]) + struct.pack("I", ETH0))
    with opened(family, socket.SOCK_DGRAM, steps) as sock:
        sock.sendmsg([b"GET /"], [control], 0, (to, port))
        return sock.recv(512)


def ping(family, to, _port, steps):
    v6 = family == socket.AF_INET6
    with opened(family, socket.SOCK_DGRAM, steps, socket.IPPROTO_ICMPV6 if v6 else socket.IPPROTO_ICMP) as sock:
        sock.sendto(bytes([128 if v6 else 8, 0, 0, 0, 0, 0, 0, 1]), (to, 0))
        return b"echo " + sock.recv(512)


def tries():
    """(name, function, family, address, port, steps)"""
    for family, addresses, more in ((socket.AF_INET, ARGUMENTS["to_v4"], V4_WAYS),
                                    (socket.AF_INET6, ARGUMENTS["to_v6"], V6_WAYS)):
        v6 = family == socket.AF_INET6
        for to in addresses:
            for way, steps in {**WAYS, **more}.items():
                yield f"tcp {way}", tcp, family, to, 80, steps
            for port in (443, 988):
                for way in ("plain", "device", "device source"):
                    yield f"tcp {way}", tcp, family, to, port, WAYS[way]
            if v6:
                for way in ("plain", "source"):
                    yield f"scoped {way}", scoped, family, to, 80, WAYS[way]
            else:
                yield "mapped", mapped, family, to, 80, []
                yield "mapped device", mapped, family, to, 80, [device]
                yield "mapped device source", mapped, family, to, 80, [device, mapped_source]
            yield "mptcp device", mptcp, family, to, 80, [device]
            yield "mptcp device source", mptcp, family, to, 80, [device, source]
            yield "fast open device", fast_open, family, to, 80, [device]
            yield "through dns", through_dns, family, to, 80, []
            yield "through dns device", through_dns, family, to, 80, [device]
            for way in ("plain", "device", "device source", "dns source", "device dns source", "unicast"):
                yield f"udp {way}", udp, family, to, 80, WAYS[way]
            yield "udp through dns", udp_through_dns, family, to, 80, []
            yield "udp through dns device", udp_through_dns, family, to, 80, [device]
            yield "udp packet info", packet_info, family, to, 80, []
            yield "udp packet info device", packet_info, family, to, 80, [device]
            yield "ping", ping, family, to, 0, []
            yield "ping device", ping, family, to, 0, [device]


def outcome(one):
    name, function, family, to, port, steps = one
    try:
        said = function(family, to, port, steps)
    except TimeoutError:
        said = b"ETIMEDOUT"
    except OSError as error:
        said = errno.errorcode.get(error.errno, str(error.errno)).encode()
    return [f"{name} {to} {port}", said.decode("latin-1")]


def main():
    everything = list(tries())
    with concurrent.futures.ThreadPoolExecutor(len(everything)) as pool:
        print(json.dumps(dict(pool.map(outcome, everything))))


main()
