# SPDX-License-Identifier: Apache-2.0
"""Run in a neighbour of a sandbox on its bridge: sends raw frames to the sandbox's MAC address, and looks for a
second at what comes back from there. Prints, as JSON, the answers as "FROM PORT FLAGS" a kind of frame.

Arguments, as JSON: mac, v4, v6 (the sandbox's), own_v4, own_v6, open (a port on which the sandbox listens).
"""

import ipaddress
import json
import select
import socket
import struct
import sys
import time

METADATA_V4, METADATA_V6 = "169.254.169.254", "fd20:ce::254"
PATIENCE_S = 1.0
TCP, UDP = 6, 17
SYN = 2
ARGUMENTS = json.loads(sys.argv[1])


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def packed(address):
    return ipaddress.ip_address(address).packed


def segment(source, to, source_port, port, protocol, payload=b""):
    pseudo = packed(source) + packed(to)
    if protocol == TCP:
        head = struct.pack("!HHIIBBHHH", source_port, port, 1000 + source_port, 0, 5 << 4, SYN, 64000, 0, 0)
        place = 16
    else:
        head = struct.pack("!HHHH", source_port, port, 8 + len(payload), 0)
        place = 6
    data = head + payload
    if ":" in to:
        pseudo += struct.pack("!II", len(data), protocol)
    else:
        pseudo += struct.pack("!BBH", 0, protocol, len(data))
    return data[:place] + struct.pack("!H", checksum(pseudo + data)) + data[place + 2:]


def packet(source, to, source_port, port, protocol, payload=b""):
    data = segment(source, to, source_port, port, protocol, payload)
    if ":" in to:
        return 0x86dd, struct.pack("!IHBB", 6 << 28, len(data), protocol, 64) + packed(source) + packed(to) + data
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(data), source_port, 0, 64, protocol, 0)
    head += packed(source) + packed(to)
    return 0x0800, head[:10] + struct.pack("!H", checksum(head)) + head[12:] + data


def frames():
    """(kind, source, to, source port, port, protocol): the source port tells them apart."""
    v4, v6, own_v4, own_v6 = (ARGUMENTS[name] for name in ("v4", "v6", "own_v4", "own_v6"))
    yield "control v4", own_v4, v4, ARGUMENTS["open"], TCP
    yield "control v6", own_v6, v6, ARGUMENTS["open"], TCP
    for port in (80, 53):
        yield f"metadata v4 {port}", own_v4, METADATA_V4, port, TCP
        yield f"metadata v6 {port}", own_v6, METADATA_V6, port, TCP
        yield f"own v4 {port}", own_v4, v4, port, TCP
        yield f"own v6 {port}", own_v6, v6, port, TCP
        yield f"spoofed as metadata v4 {port}", METADATA_V4, METADATA_V4, port, TCP
        yield f"spoofed as metadata v6 {port}", METADATA_V6, METADATA_V6, port, TCP
        yield f"spoofed as loopback {port}", "127.0.0.1", METADATA_V4, port, TCP
        yield f"spoofed as the sandbox {port}", v4, METADATA_V4, port, TCP
        yield f"dns v4 {port}", own_v4, METADATA_V4, port, UDP
        yield f"dns v6 {port}", own_v6, METADATA_V6, port, UDP
    yield "loopback v4", own_v4, "127.0.0.1", 80, TCP
    yield "loopback v6", own_v6, "::1", 80, TCP
    yield "another resolver", own_v4, "169.254.169.253", 53, UDP


def read(data):
    """(from, source port, destination port, what) of a frame, or None."""
    kind, body = struct.unpack_from("!H", data, 12)[0], data[14:]
    if kind == 0x0800:
        protocol, source, rest = body[9], body[12:16], body[(body[0] & 15) * 4:]
    elif kind == 0x86dd:
        protocol, source, rest = body[6], body[8:24], body[40:]
    else:
        return None
    where = str(ipaddress.ip_address(source))
    if protocol in (TCP, UDP):
        from_port, to_port = struct.unpack_from("!HH", rest)
        what = f"tcp {rest[13]:#04x}" if protocol == TCP else f"udp {rest[8:].hex()}"
        return where, from_port, to_port, what
    if protocol in (1, 58):
        # The packet that it is about is in it.
        inner = rest[8:]
        inner = inner[20:] if protocol == 1 else inner[40:]
        if len(inner) >= 4:
            return where, 0, struct.unpack_from("!H", inner)[0], f"icmp {rest[0]} {rest[1]}"
    return None


def main():
    mac = bytes.fromhex(ARGUMENTS["mac"].replace(":", ""))
    kinds = {}
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as sock:
        sock.bind(("eth0", 3))
        own_mac = sock.getsockname()[4]
        query = bytes.fromhex("004d01000001000000000000016104" + b"name".hex() + "04" + b"test".hex() + "0000010001")
        for number, (kind, source, to, port, protocol) in enumerate(frames()):
            for source_port in (40000 + number, *([53] if "metadata" in kind and "spoofed" not in kind else [])):
                kinds.setdefault(source_port, kind)
                ethertype, data = packet(source, to, source_port, port, protocol, query if protocol == UDP else b"")
                sock.send(mac + own_mac + struct.pack("!H", ethertype) + data)
        answers = {kind: [] for kind in kinds.values()}
        end = time.monotonic() + PATIENCE_S
        while (left := end - time.monotonic()) > 0:
            if not select.select([sock], [], [], left)[0]:
                break
            data, where = sock.recvfrom(2048)
            found = read(data) if where[2] != socket.PACKET_OUTGOING and data[6:12] == mac else None
            if found and found[2] in kinds:
                answers[kinds[found[2]]].append(f"{found[0]} {found[1]} {found[3]}")
    print(json.dumps(answers))


main()
