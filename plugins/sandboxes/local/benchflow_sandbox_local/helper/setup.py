"""What the helper does once: find out what this host allows, and lay out the folders that all boxes are made of."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from typing import Any, Final

from benchflow_boxkit.inside import system

from benchflow_sandbox_local.helper import linux, seccomp, tree
from benchflow_sandbox_local.helper.box import Host
from benchflow_sandbox_local.helper.isolation import Confinement

_NEEDED_CAPABILITIES: Final = (6, 7, 12, 18, 21)  # setgid setuid net_admin sys_chroot sys_admin
RANGE: Final = 65536
_FIRST_ID: Final = 0x70000000
"""Start of the part of the id space that distributions, containers and login services leave unused."""


class Unavailable(Exception):
    """No box of the kind asked for can be made here."""


def prepare(config: dict[str, Any]) -> tuple[Host, dict[str, Any]]:
    """`config`: state, dirs (name, host path), stage (forced, or 0). Returns the host and what to tell the provider."""
    facts: dict[str, Any] = {"userns": True, "idmap": False, "single_user": False, "read_only": []}
    privileged = all(linux.effective_capabilities() >> c & 1 for c in _NEEDED_CAPABILITIES)
    userns = _namespace_for_root(facts) if privileged else None
    if not privileged:
        facts["single_user"] = not become_root_of_own_namespace()
    system.unshare(system.CLONE_NEWNS)
    system.mount(None, "/", None, system.MS_REC | system.MS_PRIVATE)
    stage_dir = os.path.join(config["state"], "stage")
    system.mount("tmpfs", stage_dir, "tmpfs", system.MS_NODEV, "mode=755,size=1m")
    for name in ("root", "data", "low", "proc"):
        os.mkdir(f"{stage_dir}/{name}")
    userns = _attach_data(config["state"], stage_dir, userns, facts)
    nesting = bool(config.get("nesting"))
    if nesting and userns is not None and not facts["idmap"]:
        raise OSError(errno.EPERM, "nesting is for boxes whose root is nobody on the host, and ids cannot be shifted")
    program = b"" if nesting else seccomp.program()
    facts["seccomp"] = bool(program)
    confinement = Confinement(program, facts["single_user"], nesting)
    stage = config["stage"] or 1
    if stage == 1 and (reason := _in_child(lambda: _try_overlay(stage_dir, userns))):
        if config["stage"] == 1:
            raise Unavailable(reason)
        facts["overlay_reason"] = reason
        stage = 2
    facts["stage"] = stage
    # Without overlays nothing is written there, so ids need no shift, and root's own files stay closed to the box.
    shifted = userns if facts["idmap"] and stage == 1 else None
    _attach_host(config["dirs"], stage_dir, shifted, facts)
    return Host(stage_dir, stage, userns, confinement), facts


def _namespace_for_root(facts: dict[str, Any]) -> int | None:
    try:
        return _user_namespace(_FIRST_ID + RANGE * (os.getpid() % 4096))
    except OSError:
        facts["userns"] = False
        return None


def _user_namespace(first: int) -> int:
    """A user namespace whose ids 0..65535 are `first`.. outside."""
    read, write = os.pipe2(os.O_CLOEXEC)
    pid = linux.clone(system.CLONE_NEWUSER)
    if pid == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    try:
        for name in ("uid_map", "gid_map"):
            _write(f"/proc/{pid}/{name}", f"0 {first} {RANGE}")
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(read)
        os.close(write)
        os.waitpid(pid, 0)


def become_root_of_own_namespace() -> bool:
    """Enter a user namespace as its root. True: with a whole range of ids, which needs newuidmap and /etc/subuid."""
    uid, gid = os.geteuid(), os.getegid()
    pid = os.getpid()
    read, write = os.pipe2(os.O_CLOEXEC)
    answer_read, answer_write = os.pipe2(os.O_CLOEXEC)
    ranges = _granted_ranges(uid)
    mapper = linux.clone() if ranges else 0
    if ranges and mapper == 0:
        import subprocess

        os.close(write)
        os.read(read, 1)
        done = all(
            subprocess.run([tool, str(pid), "0", str(own), "1", "1", *map(str, granted)], check=False).returncode == 0
            for tool, own, granted in (("newuidmap", uid, ranges[0]), ("newgidmap", gid, ranges[1]))
        )
        os.write(answer_write, b"y" if done else b"n")
        os._exit(0)
    system.unshare(system.CLONE_NEWUSER)
    os.close(write)
    mapped = bool(ranges) and os.read(answer_read, 1) == b"y"
    if ranges:
        os.waitpid(mapper, 0)
    for fd in (read, answer_read, answer_write):
        os.close(fd)
    if not mapped:
        with contextlib.suppress(OSError):
            _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"0 {uid} 1")
        _write("/proc/self/gid_map", f"0 {gid} 1")
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    return mapped


def _granted_ranges(uid: int) -> tuple[tuple[int, int], tuple[int, int]] | None:
    import shutil

    if not (shutil.which("newuidmap") and shutil.which("newgidmap")):
        return None
    try:
        import pwd

        keys = {str(uid), pwd.getpwuid(uid).pw_name}
    except KeyError:
        keys = {str(uid)}
    found = []
    for path in ("/etc/subuid", "/etc/subgid"):
        with contextlib.suppress(OSError), open(path) as file:
            rows = [line.strip().split(":") for line in file]
            found += [(int(r[1]), min(int(r[2]), RANGE - 1)) for r in rows if len(r) == 3 and r[0] in keys][:1]
    return (found[0], found[1]) if len(found) == 2 else None


def _attach_data(state: str, stage_dir: str, userns: int | None, facts: dict[str, Any]) -> int | None:
    """Our files, with ids shifted where the file system can, so that root in a box is nobody on the host."""
    if userns is not None:
        try:
            linux.attach(state, f"{stage_dir}/data", userns=userns)
            facts["idmap"] = True
            return userns
        except OSError:
            os.close(userns)
            userns = _user_namespace(0)
    linux.attach(state, f"{stage_dir}/data")
    return userns


def _attach_host(dirs: list[list[str]], stage_dir: str, shifted: int | None, facts: dict[str, Any]) -> None:
    for name, path in dirs:
        target = f"{stage_dir}/low/{name}"
        os.mkdir(target)
        try:
            linux.attach(path, target, userns=shifted, attributes=linux.MOUNT_ATTR_RDONLY)
        except OSError:  # folders with mounts below that we may not lift, or of a file system that cannot shift ids
            linux.bind(path, target, read_only=True)
            facts["read_only"].append(name)
    for name in ("resolv.conf", "hosts"):  # for boxes on the host's network
        with (
            contextlib.suppress(OSError),
            open(f"/etc/{name}", "rb") as source,
            open(f"{stage_dir}/{name}", "wb") as copy,
        ):
            copy.write(source.read(1 << 20))


def _try_overlay(stage_dir: str, userns: int | None) -> None:
    os.chdir(stage_dir)
    if userns is not None:
        linux.setns(userns, system.CLONE_NEWUSER)
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)
    system.unshare(system.CLONE_NEWNS)
    trial = f"data/boxes/.trial-{os.getpid()}"
    try:
        for name in ("l", "u", "w"):
            os.makedirs(f"{trial}/{name}")
        os.close(os.open(f"{trial}/l/file", os.O_CREAT | os.O_WRONLY, 0o600))
        options = f"lowerdir={trial}/l,upperdir={trial}/u,workdir={trial}/w,userxattr,volatile"
        system.mount("overlay", "root", "overlay", system.MS_NODEV, options)
        os.unlink("root/file")
        linux.unmount("root")
    finally:
        with contextlib.suppress(OSError):
            tree.remove(trial)


def _in_child(work: Callable[[], None]) -> str:
    """Run in a fork; returns why it failed, or nothing."""
    read, write = os.pipe2(os.O_CLOEXEC)
    pid = linux.clone()
    if pid == 0:
        try:
            work()
        except BaseException as error:
            os.write(write, str(error.args[-1] if error.args else error).encode()[:500])
        os._exit(0)
    os.close(write)
    with open(read) as answer:
        reason = answer.read()
    os.waitpid(pid, 0)
    return reason


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
