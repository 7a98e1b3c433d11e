"""System calls of walls: routing rules."""

from __future__ import annotations

import os
import socket
import struct

CAP_NET_ADMIN = 12

_RTM_NEWRULE, _RTM_DELRULE = 32, 33
_REQUEST, _ACK, _CREATE, _EXCL = 1, 4, 0x400, 0x200
_ERROR = 2
_FRA_DST, _FRA_PRIORITY, _FRA_IP_PROTO, _FRA_DPORT_RANGE = 1, 6, 22, 24
_LOOK_UP, _PROHIBIT, _MAIN_TABLE = 1, 8, 254


def forbid(prefix: str, priority: int, *, undo: bool = False) -> None:
    """A routing rule: nothing in this network namespace reaches addresses of `prefix` any more (`undo`: again)."""
    _rule(prefix, priority, 0, _PROHIBIT, undo)


def permit(prefix: str, priority: int) -> None:
    """A routing rule that comes before those that forbid: the other services of the same rollout."""
    _rule(prefix, priority, _MAIN_TABLE, _LOOK_UP, False)


def permit_names(address: str, priority: int) -> None:
    """The same for name look-ups at this address, and nothing else there."""
    for protocol in (socket.IPPROTO_UDP, socket.IPPROTO_TCP):
        port = _attribute(_FRA_IP_PROTO, bytes([protocol])) + _attribute(_FRA_DPORT_RANGE, struct.pack("=HH", 53, 53))
        _rule(address, priority, _MAIN_TABLE, _LOOK_UP, False, port)


def _rule(prefix: str, priority: int, table: int, action: int, undo: bool, more: bytes = b"") -> None:
    address, _, length = prefix.partition("/")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    bits = int(length) if length else (128 if family == socket.AF_INET6 else 32)
    body = struct.pack("=BBBBBBBBI", family, bits, 0, 0, table, 0, 0, action, 0)
    if bits:
        body += _attribute(_FRA_DST, socket.inet_pton(family, address))
    body += _attribute(_FRA_PRIORITY, struct.pack("=I", priority)) + more
    kind, flags = (_RTM_DELRULE, _REQUEST | _ACK) if undo else (_RTM_NEWRULE, _REQUEST | _ACK | _CREATE | _EXCL)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        netlink.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body)
        answer = netlink.recv(65536)
    if struct.unpack_from("=H", answer, 4)[0] == _ERROR:
        code = -struct.unpack_from("=i", answer, 16)[0]
        if code and code not in ((2,) if undo else (17,)):  # gone already, there already
            raise OSError(code, f"rule for {prefix}: {os.strerror(code)}")


def _attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)
