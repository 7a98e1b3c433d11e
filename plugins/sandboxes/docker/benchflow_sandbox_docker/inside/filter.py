"""The system-call filter of programs in a box whose first process may mount: for them it stays as the engine has it.

An engine opens these calls to a whole container or to none of it.
"""

from __future__ import annotations

import errno
import os
import struct
from typing import Final

_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NEW_NAMESPACES: Final = 0x7E020000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_X32: Final = 0x40000000
_CLONE3: Final = 435

_EVERYWHERE: Final = (428, 429, 430, 431, 432, 433, 442, 443, 467)
"""open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr quotactl_fd open_tree_attr"""
_CALLS: Final = {
    # mount umount2 pivot_root setns sethostname setdomainname quotactl lookup_dcookie perf_event_open fanotify_init
    # bpf syslog
    "x86_64": (165, 166, 155, 308, 170, 171, 179, 212, 298, 300, 321, 103),
    "aarch64": (40, 39, 41, 268, 161, 162, 60, 18, 241, 262, 280, 116),
}
_MAKES_NAMESPACES: Final = {"x86_64": (56, 272), "aarch64": (220, 97)}
"""clone unshare"""


def program(machine: str = os.uname().machine) -> bytes:
    """As BPF instructions; empty for a machine we know no numbers of, where no box has views."""
    if machine not in _ARCHITECTURES:
        return b""
    rules = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_EQUAL, _ARCHITECTURES[machine], 1, 0),
        _refuse(errno.ENOSYS),
        _step(_LOAD, _NUMBER),
        _step(_AT_LEAST, _X32, 0, 1),  # a second numbering of the same calls
        _refuse(errno.ENOSYS),
        _step(_EQUAL, _CLONE3, 0, 1),  # its flags cannot be looked at; programs fall back to clone
        _refuse(errno.ENOSYS),
    ]
    for number in (*_CALLS[machine], *_EVERYWHERE):
        rules += [_step(_EQUAL, number, 0, 1), _refuse(errno.EPERM)]
    for number in _MAKES_NAMESPACES[machine]:
        rules += [_step(_EQUAL, number, 0, 4), _step(_LOAD, _FIRST_ARGUMENT), _step(_ANY_BIT, _NEW_NAMESPACES, 0, 1)]
        rules += [_refuse(errno.EPERM), _step(_RETURN, _ALLOW)]
    return b"".join([*rules, _step(_RETURN, _ALLOW)])


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _refuse(error: int) -> bytes:
    return _step(_RETURN, _ERRNO | error)
