"""System calls that Python does not wrap."""

from __future__ import annotations

import ctypes
import os

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36

_SYS_CLOSE_RANGE = 436
libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    zeros = [ctypes.c_ulong(0)] * 3
    checked(libc.prctl(option, ctypes.c_ulong(value), *zeros), f"prctl {option}")


def checked(result: int, what: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def close_from(first: int) -> None:
    if libc.syscall(_SYS_CLOSE_RANGE, ctypes.c_uint(first), ctypes.c_uint(0xFFFFFFFF), 0) < 0:
        os.closerange(first, os.sysconf("SC_OPEN_MAX") if os.sysconf("SC_OPEN_MAX") > 0 else 1 << 16)


def close_except(keep: set[int]) -> None:
    low = 0
    for fd in sorted(keep):
        if low < fd:
            os.closerange(low, fd)
        low = fd + 1
    close_from(low)
