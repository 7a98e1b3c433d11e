"""The system calls of namespaces, beside those of the box kit. Everything here raises `OSError` on failure."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct

from benchflow_boxkit.inside.system import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    PR_CAPBSET_DROP,
    checked,
    libc,
    mount,
)

MACHINE = os.uname().machine

CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MNT_DETACH = 2

MOUNT_ATTR_RDONLY = 1
MOUNT_ATTR_NOSUID = 2
MOUNT_ATTR_IDMAP = 0x00100000

_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _OPEN_TREE_CLOEXEC = 1, 0o2000000
_MOVE_MOUNT_F_EMPTY_PATH = 4
_SIOCSIFFLAGS, _IFF_UP, _IFF_RUNNING = 0x8914, 0x1, 0x40
_SIGCHLD = 17

# Same numbers on every architecture since they were added after the tables were unified.
_SYS_OPEN_TREE, _SYS_MOVE_MOUNT, _SYS_MOUNT_SETATTR = 428, 429, 442
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}.get(MACHINE, -1)
_SYS_CLONE = {"x86_64": 56, "aarch64": 220}.get(MACHINE, -1)

# Keeps the interpreter lock across the call: the child of a raw clone must not wait for a lock nobody holds.
_pylibc = ctypes.PyDLL(None, use_errno=True)

_KEPT_CAPABILITIES = (0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 29, 31)
"""chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service net_raw sys_chroot audit_write setfcap:
what a container engine leaves to root by default, without the one that makes device nodes."""
KEPT_MASK = sum(1 << c for c in _KEPT_CAPABILITIES)


def _bytes(value: str | None) -> bytes | None:
    return None if value is None else os.fsencode(value)


def unmount(target: str, flags: int = MNT_DETACH) -> None:
    checked(libc.umount2(_bytes(target), flags), f"umount {target}")


def setns(fd: int, flags: int) -> None:
    checked(libc.setns(fd, flags), "setns")


def pivot_root(new: str, old: str) -> None:
    checked(libc.syscall(_SYS_PIVOT_ROOT, _bytes(new), _bytes(old)), "pivot_root")


def clone(flags: int = 0) -> int:
    """fork(2) with namespaces. For single-threaded processes only."""
    return checked(_pylibc.syscall(_SYS_CLONE, ctypes.c_ulong(flags | _SIGCHLD), None, None, None, None), "clone")


def mount_setattr(
    path: str, set_: int, *, clear: int = 0, recursive: bool = False, userns: int = 0, fd: int = _AT_FDCWD
) -> None:
    attributes = struct.pack("=QQQQ", set_, clear, 0, userns)
    flags = (_AT_RECURSIVE if recursive else 0) | (_AT_EMPTY_PATH if not path else 0)
    result = libc.syscall(_SYS_MOUNT_SETATTR, fd, _bytes(path), flags, attributes, len(attributes))
    checked(result, f"mount_setattr {path}")


def lift(source: str, *, recursive: bool = False, userns: int | None = None, attributes: int = 0) -> int:
    """A detached copy of the mount at `source`, id-mapped by `userns` if given, as a descriptor."""
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | (_AT_RECURSIVE if recursive else 0)
    fd = checked(libc.syscall(_SYS_OPEN_TREE, _AT_FDCWD, _bytes(source), flags), f"open_tree {source}")
    try:
        if userns is not None:
            mount_setattr("", MOUNT_ATTR_IDMAP | attributes, recursive=recursive, userns=userns, fd=fd)
        elif attributes:
            mount_setattr("", attributes, recursive=recursive, fd=fd)
    except OSError:
        os.close(fd)
        raise
    return fd


def place(tree: int, target: str) -> None:
    """Put a lifted mount somewhere; closes the descriptor."""
    try:
        result = libc.syscall(_SYS_MOVE_MOUNT, tree, b"", _AT_FDCWD, _bytes(target), _MOVE_MOUNT_F_EMPTY_PATH)
        checked(result, f"move_mount to {target}")
    finally:
        os.close(tree)


def attach(source: str, target: str, *, userns: int | None = None, attributes: int = 0) -> None:
    place(lift(source, userns=userns, attributes=attributes), target)


def bind(source: str, target: str, *, read_only: bool = False, recursive: bool = True) -> None:
    """A bind mount; read-only covers what is mounted below as well."""
    mount(source, target, None, MS_BIND | (MS_REC if recursive else 0))
    if not read_only:
        return
    try:
        mount_setattr(target, MOUNT_ATTR_RDONLY, recursive=recursive)
    except OSError:  # before Linux 5.12: the top mount alone, keeping the flags a user namespace may not clear
        kept = os.statvfs(target).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC | 1024)
        mount(None, target, None, MS_BIND | MS_REMOUNT | MS_RDONLY | kept)


def sync_file_system(path: str) -> None:
    """Write everything back of the file system that holds `path`."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        checked(libc.syncfs(fd), "syncfs")
    finally:
        os.close(fd)


def loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP | _IFF_RUNNING))


def drop_bounding_set() -> None:
    """What programs of the box can never gain, by setuid programs or file capabilities."""
    for capability in range(64):
        if KEPT_MASK >> capability & 1:
            continue
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 and ctypes.get_errno() == 22:
            return  # EINVAL: beyond the last one this kernel knows


def limit_capabilities(mask: int = KEPT_MASK) -> None:
    header = struct.pack("=II", 0x20080522, 0)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    checked(libc.capset(header, struct.pack("=6I", low, low, 0, high, high, 0)), "capset")


def effective_capabilities() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1], 16) for line in status if line.startswith("CapEff"))
