"""TCP ports that a program cannot connect to: servers of a vendor's own in the box, which would do for a limited
program what its view forbids.

The kernel's Landlock (Linux 6.7) takes a list of what is allowed: every other port. It sees `connect` of plain TCP; a
filter of system calls refuses the other ways to open a connection.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from collections.abc import Collection

from benchflow_boxkit.inside import system

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CONNECT_TCP, _NET_PORT = 2, 2
_MPTCP, _AF_SMC, _MSG_FASTOPEN = 262, 43, 0x20000000
_IO_URING_SETUP, _X32 = 425, 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALLOW, _ERRNO = 0x7FFF0000, 0x50000
_MACHINES = {
    "x86_64": (0xC000003E, {"socket": 41, "sendto": 44, "sendmsg": 46, "sendmmsg": 307}),
    "aarch64": (0xC00000B7, {"socket": 198, "sendto": 206, "sendmsg": 211, "sendmmsg": 269}),
}
_OTHER_WAYS = (
    ("socket", 0, _EQUAL, _AF_SMC, errno.EAFNOSUPPORT),
    ("socket", 2, _EQUAL, _MPTCP, errno.EPROTONOSUPPORT),
    ("sendto", 3, _ANY_BIT, _MSG_FASTOPEN, errno.EOPNOTSUPP),
    ("sendmsg", 2, _ANY_BIT, _MSG_FASTOPEN, errno.EOPNOTSUPP),
    ("sendmmsg", 3, _ANY_BIT, _MSG_FASTOPEN, errno.EOPNOTSUPP),
)
"""System call, argument, how it is compared with what, and the answer."""


def shut(ports: Collection[int]) -> None:
    """For this process and all that come from it, for ever. As root of its own user namespace."""
    rules = struct.pack("=QQ", 0, _CONNECT_TCP)
    ruleset = system.libc.syscall(_CREATE_RULESET, rules, len(rules), 0)
    if ruleset < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"its kernel cannot keep a program from a port (Linux 6.7 can): {os.strerror(code)}")
    rule = ctypes.create_string_buffer(struct.pack("=QQ", _CONNECT_TCP, 0))
    for port in range(1, 65536):
        if port not in ports:
            struct.pack_into("=Q", rule, 8, port)
            system.checked(system.libc.syscall(_ADD_RULE, ruleset, _NET_PORT, rule, 0), "landlock_add_rule")
    system.checked(system.libc.syscall(_RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)
    system.load_filter(_filter())


def holds(port: int) -> bool:
    """Whether this process cannot reach a port that something listens on."""
    for protocol in (socket.IPPROTO_TCP, _MPTCP):
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as client:
                client.connect(("127.0.0.1", port))
                return False
        except OSError:
            continue
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
            client.sendto(b"x", _MSG_FASTOPEN, ("127.0.0.1", port))
            return False
    except OSError:
        return True


def _filter() -> bytes:
    machine = _MACHINES.get(os.uname().machine)
    if machine is None:
        raise OSError(errno.ENOSYS, f"the system calls of {os.uname().machine} are not known here")
    architecture, numbers = machine
    program = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, architecture), _refused(errno.ENOSYS)]
    program += [(_LOAD, 0, 0, _NUMBER), (_AT_LEAST, 0, 1, _X32), _refused(errno.ENOSYS)]
    program += [(_EQUAL, 0, 1, _IO_URING_SETUP), _refused(errno.ENOSYS)]
    for call, argument, compared, value, answer in _OTHER_WAYS:
        program += [(_LOAD, 0, 0, _NUMBER), (_EQUAL, 0, 3, numbers[call]), (_LOAD, 0, 0, _ARGUMENTS + 8 * argument)]
        program += [(compared, 0, 1, value), _refused(answer)]
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _refused(code: int) -> tuple[int, int, int, int]:
    return _RETURN, 0, 0, _ERRNO | code
