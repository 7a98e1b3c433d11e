"""Landlock: a process gives up, for itself and its children, all files but the ones named."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from benchflow_boxkit.inside import system

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE = 1 << 14
_FIRST = (1 << 13) - 1
_REFER = 1 << 13
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE

_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """Of the kernel's Landlock; 0 where there is none."""
    if os.uname().sysname != "Linux":
        return 0
    found: int = _libc.syscall(_CREATE, None, 0, 1)
    return max(found, 0)


def restrict(read: Iterable[str], write: Iterable[str]) -> None:
    """From now on: read and run what lies below `read`, do anything below `write`, touch nothing else."""
    found = version()
    if not found:
        return
    all_rights = _FIRST | (_REFER if found >= 2 else 0) | (_TRUNCATE if found >= 3 else 0)
    rules = _libc.syscall(_CREATE, struct.pack("=Q", all_rights), 8, 0)
    if rules < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    for paths, rights in ((read, _EXECUTE | _READ_FILE | _READ_DIR), (write, all_rights)):
        for path in paths:
            _allow(rules, path, rights)
    system.prctl(system.PR_SET_NO_NEW_PRIVS, 1)
    if _libc.syscall(_RESTRICT, rules, 0) < 0:
        raise OSError(ctypes.get_errno(), "landlock_restrict_self")
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        allowed = rights if os.path.isdir(path) else rights & _FILE_RIGHTS
        if _libc.syscall(_ADD, rules, 1, struct.pack("=Qi", allowed, fd), 0) < 0:
            raise OSError(ctypes.get_errno(), f"landlock_add_rule {path}")
    finally:
        os.close(fd)
