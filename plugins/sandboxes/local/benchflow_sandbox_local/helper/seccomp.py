"""The system-call filter of every process in a box: refuses what reaches around the namespaces, kills nothing."""

from __future__ import annotations

import errno
import struct
from typing import Final

from benchflow_sandbox_local.helper.linux import MACHINE

_AUDIT_X86_64, _AUDIT_I386, _AUDIT_AARCH64 = 0xC000003E, 0x40000003, 0xC00000B7
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NEW_NAMESPACES = 0x7E020000
_NEW_TIME = 0x80
_LD, _JEQ, _JGE, _JSET, _RET = 0x20, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARG0 = 0, 4, 16

# The new mount API and other calls whose numbers are the same everywhere.
_COMMON: Final = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "open_tree_attr": 467,
}
_X86_64: Final = {
    "clone": 56, "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "swapon": 167,
    "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173,
    "init_module": 175, "delete_module": 176, "quotactl": 179, "acct": 163, "settimeofday": 164, "adjtimex": 159,
    "kexec_load": 246, "kexec_file_load": 320, "add_key": 248, "request_key": 249, "keyctl": 250,
    "perf_event_open": 298, "open_by_handle_at": 304, "clock_settime": 227, "clock_adjtime": 305,
    "finit_module": 313, "bpf": 321, "userfaultfd": 323, "lookup_dcookie": 212, "syslog": 103, "vhangup": 153,
}  # fmt: skip
_I386: Final = {
    "clone": 120, "unshare": 310, "setns": 346, "mount": 21, "umount": 22, "umount2": 52, "pivot_root": 217,
    "swapon": 87, "swapoff": 115, "reboot": 88, "sethostname": 74, "setdomainname": 121, "iopl": 110, "ioperm": 101,
    "init_module": 128, "delete_module": 129, "quotactl": 131, "acct": 51, "settimeofday": 79, "adjtimex": 124,
    "kexec_load": 283, "add_key": 286, "request_key": 287, "keyctl": 288, "perf_event_open": 336,
    "open_by_handle_at": 342, "clock_settime": 264, "clock_settime64": 404, "clock_adjtime": 343,
    "clock_adjtime64": 405, "stime": 25, "finit_module": 350, "bpf": 357, "userfaultfd": 374, "lookup_dcookie": 253,
    "vm86": 166, "vm86old": 113, "syslog": 103, "vhangup": 111,
}  # fmt: skip
_AARCH64: Final = {
    "clone": 220, "unshare": 97, "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41, "swapon": 224,
    "swapoff": 225, "reboot": 142, "sethostname": 161, "setdomainname": 162, "init_module": 105,
    "delete_module": 106, "quotactl": 60, "acct": 89, "settimeofday": 170, "adjtimex": 171, "kexec_load": 104,
    "kexec_file_load": 294, "add_key": 217, "request_key": 218, "keyctl": 219, "perf_event_open": 241,
    "open_by_handle_at": 265, "clock_settime": 112, "clock_adjtime": 266, "finit_module": 273, "bpf": 280,
    "userfaultfd": 282, "lookup_dcookie": 18, "syslog": 116, "vhangup": 58,
}  # fmt: skip
# Programs fall back by themselves when these do not exist, but not when they are refused.
_ABSENT: Final = frozenset({"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"})


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _refuse(error: int) -> bytes:
    return _instruction(_RET, _ERRNO | error)


def _table(calls: dict[str, int], *, x32: bool) -> bytes:
    """The rules of one architecture; every path through it ends in a return."""
    parts = [_instruction(_LD, _NR)]
    if x32:  # x86_64's second numbering would walk around the table
        parts += [_instruction(_JGE, 0x40000000, 0, 1), _refuse(errno.ENOSYS)]
    for name, number in {**calls, **_COMMON}.items():
        if name in ("clone", "unshare"):
            flags = _NEW_NAMESPACES | (_NEW_TIME if name == "unshare" else 0)
            body = [_instruction(_LD, _ARG0), _instruction(_JSET, flags, 0, 1), _refuse(errno.EPERM)]
            body.append(_instruction(_RET, _ALLOW))
        else:
            body = [_refuse(errno.ENOSYS if name in _ABSENT else errno.EPERM)]
        parts += [_instruction(_JEQ, number, 0, len(body)), *body]
    parts.append(_instruction(_RET, _ALLOW))
    return b"".join(parts)


def program(machine: str = MACHINE) -> bytes:
    """The filter for this machine, as BPF instructions; empty where we have no table."""
    if machine == "x86_64":
        native = _table(_X86_64, x32=True)
        foreign = _table(_I386, x32=False)
        # A jump reaches 255 instructions, which is more than the longest table has.
        head = [_instruction(_LD, _ARCH), _instruction(_JEQ, _AUDIT_X86_64, 0, len(native) // 8)]
        second = [_instruction(_JEQ, _AUDIT_I386, 0, len(foreign) // 8)]
        return b"".join([*head, native, *second, foreign, _refuse(errno.ENOSYS)])
    if machine == "aarch64":
        native = _table(_AARCH64, x32=False)
        head = [_instruction(_LD, _ARCH), _instruction(_JEQ, _AUDIT_AARCH64, 0, len(native) // 8)]
        return b"".join([*head, native, _refuse(errno.ENOSYS)])
    return b""
