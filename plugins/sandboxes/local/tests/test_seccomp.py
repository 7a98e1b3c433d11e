"""The system-call filter, read as the kernel reads it."""

from __future__ import annotations

import errno
import struct

import pytest

from benchflow_sandbox_local.helper import seccomp

ALLOW = 0x7FFF0000
X86, I386, ARM = 0xC000003E, 0x40000003, 0xC00000B7
NEWUSER, NEWNS, SIGCHLD, FILES = 0x10000000, 0x20000, 17, 0x400


def verdict(machine: str, arch: int, number: int, arg0: int = 0) -> int:
    """0: allowed; otherwise the error."""
    code = [
        struct.unpack_from("=HBBI", seccomp.program(machine), at) for at in range(0, len(seccomp.program(machine)), 8)
    ]
    data = {0: number, 4: arch, 16: arg0}
    value, at = 0, 0
    while True:
        operation, yes, no, constant = code[at]
        at += 1
        if operation == 0x20:
            value = data[constant]
        elif operation == 0x06:
            return 0 if constant == ALLOW else constant & 0xFFFF
        else:
            hit = {0x15: value == constant, 0x35: value >= constant, 0x45: bool(value & constant)}[operation]
            at += yes if hit else no


@pytest.mark.parametrize(
    ("machine", "arch", "name", "number", "arg0", "expected"),
    [
        ("x86_64", X86, "read", 0, 0, 0),
        ("x86_64", X86, "execve", 59, 0, 0),
        ("x86_64", X86, "ptrace", 101, 0, 0),
        ("x86_64", X86, "fork as glibc does it", 56, SIGCHLD | 0x1200000, 0),
        ("x86_64", X86, "clone of a user namespace", 56, NEWUSER | SIGCHLD, errno.EPERM),
        ("x86_64", X86, "unshare of files", 272, FILES, 0),
        ("x86_64", X86, "unshare of mounts", 272, NEWNS, errno.EPERM),
        ("x86_64", X86, "unshare of time", 272, 0x80, errno.EPERM),
        ("x86_64", X86, "setns", 308, 0, errno.EPERM),
        ("x86_64", X86, "mount", 165, 0, errno.EPERM),
        ("x86_64", X86, "move_mount", 429, 0, errno.EPERM),
        ("x86_64", X86, "bpf", 321, 0, errno.EPERM),
        ("x86_64", X86, "keyctl", 250, 0, errno.EPERM),
        ("x86_64", X86, "kexec_file_load", 320, 0, errno.EPERM),
        ("x86_64", X86, "clone3", 435, 0, errno.ENOSYS),
        ("x86_64", X86, "io_uring_setup", 425, 0, errno.ENOSYS),
        ("x86_64", X86, "mount by the x32 numbers", 0x40000000 + 165, 0, errno.ENOSYS),
        ("x86_64", I386, "write", 4, 0, 0),
        ("x86_64", I386, "mount", 21, 0, errno.EPERM),
        ("x86_64", I386, "clone of a user namespace", 120, NEWUSER, errno.EPERM),
        ("x86_64", I386, "setns", 346, 0, errno.EPERM),
        ("x86_64", 0xC0000015, "anything of a third architecture", 4, 0, errno.ENOSYS),
        ("aarch64", ARM, "openat", 56, 0, 0),
        ("aarch64", ARM, "clone of a user namespace", 220, NEWUSER, errno.EPERM),
        ("aarch64", ARM, "mount", 40, 0, errno.EPERM),
        ("aarch64", ARM, "umount2", 39, 0, errno.EPERM),
        ("aarch64", ARM, "unshare", 97, NEWNS, errno.EPERM),
        ("aarch64", 0x40000028, "anything of 32-bit ARM", 21, 0, errno.ENOSYS),
    ],
)  # fmt: skip
def test_verdicts(machine: str, arch: int, name: str, number: int, arg0: int, expected: int) -> None:
    assert verdict(machine, arch, number, arg0) == expected, name


def test_jumps_stay_within_reach() -> None:
    for machine in ("x86_64", "aarch64"):
        program = seccomp.program(machine)
        for at in range(0, len(program), 8):
            code, yes, no, _ = struct.unpack_from("=HBBI", program, at)
            assert code in (0x20, 0x06) or at // 8 + 1 + max(yes, no) < len(program) // 8
        assert struct.unpack_from("=H", program, len(program) - 8)[0] == 0x06, "it ends in a verdict"
    assert seccomp.program("riscv64") == b""
