"""System calls that Python does not wrap."""

from __future__ import annotations

import ctypes
import os
import struct
import sys

PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 4, 22, 24, 36, 38
CAP_SYS_ADMIN = 21
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_NOATIME, MS_NODIRATIME, MS_BIND, MS_REC, MS_PRIVATE, MS_RELATIME = 0x400, 0x800, 0x1000, 0x4000, 0x40000, 0x200000

_SYS_CLOSE_RANGE = 436
_SYS_SECCOMP = {"x86_64": 317, "aarch64": 277}.get(os.uname().machine, -1)
_FILTER, _SPECULATION_ALLOWED = 1, 4
libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    zeros = [ctypes.c_ulong(0)] * 3
    checked(libc.prctl(option, ctypes.c_ulong(value), *zeros), f"prctl {option}")


def checked(result: int, what: str) -> int:
    """Return the result of a system call; raises where it says that it failed."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def close_from(first: int) -> None:
    known = sys.platform == "linux"
    if not known or libc.syscall(_SYS_CLOSE_RANGE, ctypes.c_uint(first), ctypes.c_uint(0xFFFFFFFF), 0) < 0:
        os.closerange(first, os.sysconf("SC_OPEN_MAX") if os.sysconf("SC_OPEN_MAX") > 0 else 1 << 16)


def close_except(keep: set[int]) -> None:
    low = 0
    for fd in sorted(keep):
        if low < fd:
            os.closerange(low, fd)
        low = fd + 1
    close_from(low)


def unshare(flags: int) -> None:
    checked(libc.unshare(flags), "unshare")


def mount(source: str | None, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    words = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    result = libc.mount(*words[:3], ctypes.c_ulong(flags), words[3])
    checked(result, f"mount {kind or 'bind'} on {target}")


def load_filter(program: bytes) -> None:
    """Have the kernel ask this program about every system call from now on."""
    code = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(code)))
    # Without this flag every program pays for speculation barriers. prctl, which has no flags, is for other machines.
    if libc.syscall(_SYS_SECCOMP, _FILTER, _SPECULATION_ALLOWED, header) < 0:
        checked(libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(2), header, ctypes.c_ulong(0), ctypes.c_ulong(0)), "seccomp")


def bounding_set() -> int:
    """Capabilities that a program started now may have at most, as bits."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1], 16) for line in file if line.startswith("CapBnd:"))


def limit_capabilities(kept: int) -> None:
    """What is not among these bits is lost to every program that this process becomes."""
    with open("/proc/sys/kernel/cap_last_cap") as file:
        last = int(file.read())
    for number in range(last + 1):
        if not kept >> number & 1:
            prctl(PR_CAPBSET_DROP, number)
