"""Making a box: its mounts, its own root, its network. Runs in the box's first process, before anything else does."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import sys
from typing import Any, Final, NamedTuple

from benchflow_boxkit.inside import system, users, wire

from benchflow_sandbox_local.helper import cgroups, init, linux, own
from benchflow_sandbox_local.helper.isolation import Confinement

_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
_DEVICE_LINKS: Final = {
    "ptmx": "pts/ptmx",
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
_PROC_READ_ONLY: Final = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "asound")
_PROC_HIDDEN: Final = ("kcore", "keys", "timer_list", "latency_stats", "sched_debug", "kmsg", "interrupts", "key-users")


class Host(NamedTuple):
    """What the helper set up once for all boxes."""

    stage_dir: str
    """Holds `root` (where a box is put together), `data` (our files) and `low` (the host's folders)."""
    stage: int
    userns: int | None
    """The user namespace to enter; `None`: we are in it already, or there is none."""
    confinement: Confinement


def run(host: Host, plan: dict[str, Any], control: socket.socket) -> None:
    """The whole life of a box's first process. Never returns."""
    notes: list[str] = []
    try:
        cgroups.join(plan["cgroups"])
        system.close_except({0, 1, 2, control.fileno(), *([] if host.userns is None else [host.userns])})
        os.setsid()
        os.chdir(host.stage_dir)  # while we may still walk there
        _mount_proc("proc")
        _enter(host, plan)
        _root(plan)
        if not plan["own_network"]:
            _host_names("root/etc")
        shared_memory = _shared_memory("root/dev/shm")
        _devices("root/dev", shared_memory)
        _proc("proc", "root/proc")
        _sys("root/sys", notes)
        _change_root()
        if host.stage == 1:
            own.take(plan["workdir"], plan["repositories"])
        if plan["own_network"]:
            linux.loopback_up()
        with contextlib.suppress(OSError):
            socket.sethostname(plan["hostname"])
        if not host.confinement.nesting:
            linux.drop_bounding_set()
        os.umask(0o022)
        with contextlib.suppress(OSError):  # a file is in its place: who wants to work in it will hear
            os.makedirs(plan["workdir"], exist_ok=True)
        system.prctl(system.PR_SET_DUMPABLE, 0)
        tell(control, {"event": "ready", "notes": notes, "users": users.names()})
    except BaseException as error:
        tell(control, {"event": "failed", "reason": reason(error)})
        os._exit(1)
    null = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1):
        os.dup2(null, number)
    sys.stdout = sys.stderr
    init.main(control, host.confinement)


def tell(control: socket.socket, event: wire.Message) -> None:
    """Send the box's first event: that it is ready, or why not."""
    with contextlib.suppress(OSError):
        control.sendall(wire.message(wire.EVENT, 0, event))


def reason(error: BaseException) -> str:
    """One line about what went wrong."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error.args[-1] if error.args else repr(error))


def _enter(host: Host, plan: dict[str, Any]) -> None:
    if host.userns is not None:
        linux.setns(host.userns, system.CLONE_NEWUSER)
        os.close(host.userns)
        os.setresgid(0, 0, 0)
        os.setgroups([])
        os.setresuid(0, 0, 0)
    network = linux.CLONE_NEWNET if plan["own_network"] else 0
    flags = system.CLONE_NEWNS | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS | linux.CLONE_NEWCGROUP | network
    system.unshare(flags)


def _root(plan: dict[str, Any]) -> None:
    for name in ("u", "w"):
        os.makedirs(f"data/boxes/{plan['box']}/{name}", exist_ok=True)
    for entry in plan["mounts"]:
        _mount(entry, plan["box"])


def _mount(entry: dict[str, Any], box: str) -> None:
    target = "root" + entry["at"].rstrip("/")
    if target != "root":
        require_plain(target)
    if entry["kind"] == "overlay":
        _overlay(entry["lower"], f"data/boxes/{box}", entry["name"], target)
    elif entry["kind"] == "private":
        linux.bind(f"data/boxes/{box}/u/{entry['name']}", target)
    else:
        linux.bind(entry["source"], target, read_only=not entry.get("writable"))


def _overlay(lower: list[str], box: str, name: str, target: str) -> None:
    upper, work = f"{box}/u/{name}", f"{box}/w/{name}"
    like = os.stat(lower[0])
    with contextlib.suppress(FileExistsError):
        os.mkdir(upper)
        with contextlib.suppress(OSError):  # of an id that is not mapped
            os.chown(upper, like.st_uid, like.st_gid)
        os.chmod(upper, stat.S_IMODE(like.st_mode))
    with contextlib.suppress(FileExistsError):
        os.mkdir(work)
    # volatile: no write has to reach the disk, since a box does not outlive a crash. Without it, ending a box waits
    # for the whole file system to be written back, once for each overlay.
    options = f"lowerdir={':'.join(lower)},upperdir={upper},workdir={work},userxattr,volatile"
    system.mount("overlay", target, "overlay", system.MS_NODEV, options)


def require_plain(path: str) -> None:
    """A mount point reached through a link would be somewhere else."""
    if os.path.realpath(path) != os.path.abspath(path) or not os.path.exists(path):
        raise OSError(20, f"{path} is missing or a link: nothing can be mounted there")


def _host_names(folder: str) -> None:
    """On the host's network, names are resolved as on the host."""
    for name in ("resolv.conf", "hosts"):
        if os.path.isfile(f"{folder}/{name}") and not os.path.islink(f"{folder}/{name}") and os.path.exists(name):
            linux.bind(name, f"{folder}/{name}", read_only=True, recursive=False)


def _shared_memory(folder: str) -> int:
    """A folder of the box's own root, so that a snapshot has it; it is lifted out before /dev covers it."""
    require_plain(folder)
    return linux.lift(folder, attributes=linux.MOUNT_ATTR_NOSUID)


def _devices(folder: str, shared_memory: int) -> None:
    flags = system.MS_NOSUID | system.MS_NOEXEC
    system.mount("tmpfs", folder, "tmpfs", flags | system.MS_NODEV, "mode=755,size=64k")
    for name in _DEVICES:
        if os.path.exists(f"/dev/{name}"):
            os.close(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT, 0o666))
            linux.bind(f"/dev/{name}", f"{folder}/{name}", recursive=False)
    for name in ("pts", "shm"):
        os.mkdir(f"{folder}/{name}")
    linux.place(shared_memory, f"{folder}/shm")
    with contextlib.suppress(OSError):
        system.mount("devpts", f"{folder}/pts", "devpts", flags, "newinstance,ptmxmode=0666,mode=620")
    for name, target in _DEVICE_LINKS.items():
        os.symlink(target, f"{folder}/{name}")


def _mount_proc(folder: str) -> None:
    """Must come before the user namespace: the process namespace belongs to the one we leave."""
    try:
        system.mount("proc", folder, "proc", system.MS_NOSUID | system.MS_NODEV | system.MS_NOEXEC)
    except OSError as error:
        raise OSError(error.errno, f"no private /proc here: {os.strerror(error.errno or 0)}") from None


def _proc(source: str, folder: str) -> None:
    linux.bind(source, folder)
    for name in _PROC_READ_ONLY:
        if os.path.exists(f"{folder}/{name}"):
            linux.bind(f"{folder}/{name}", f"{folder}/{name}", read_only=True)
    for name in _PROC_HIDDEN:
        if os.path.exists(f"{folder}/{name}"):
            linux.bind("/dev/null", f"{folder}/{name}", recursive=False)


def _sys(folder: str, notes: list[str]) -> None:
    """A sysfs of our own has no cgroup tree below it."""
    flags = system.MS_NOSUID | system.MS_NODEV | system.MS_NOEXEC | system.MS_RDONLY
    try:
        system.mount("sysfs", folder, "sysfs", flags)
    except OSError:
        notes.append("/sys is empty: the host does not let a box mount it")


def _change_root() -> None:
    os.chdir("root")
    linux.pivot_root(".", ".")
    linux.unmount(".")
    os.chdir("/")
