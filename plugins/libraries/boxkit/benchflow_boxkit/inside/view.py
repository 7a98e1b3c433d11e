"""Access views: one program sees some paths read-only or not at all.

It gets mounts of its own, which it may not undo, and a user namespace of its own: without that it could look at the
same files through another process's /proc/PID/root.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from benchflow_boxkit.inside import ports, system

_OPTIONS = {
    "ro": system.MS_RDONLY,
    "nosuid": system.MS_NOSUID,
    "nodev": system.MS_NODEV,
    "noexec": system.MS_NOEXEC,
    "noatime": system.MS_NOATIME,
    "nodiratime": system.MS_NODIRATIME,
    "relatime": system.MS_RELATIME,
}
_EVERY_ID = "0 0 4294967295"
_HOLDS = "holds"


class View(NamedTuple):
    read_only: Sequence[str]
    hidden: Sequence[str]
    writable: Sequence[str]
    apart: bool = True
    """In a user namespace of its own."""
    shut: Sequence[int] = ()
    """TCP ports that it cannot connect to."""


class ViewIsolation:
    """The views of one program, one after the other.

    It stands between the program's parent, which may write the id maps, and the child that needs them.
    """

    def __init__(self, *views: View) -> None:
        self.views = views
        self.apart = any(view.apart for view in views)
        if self.apart:
            self.asked, self.granted = os.pipe(), os.pipe()

    def admit(self, pid: int) -> None:
        """Map every id to itself. Without a map the child says so and ends."""
        if not self.apart:
            return
        os.close(self.asked[1])
        with contextlib.suppress(OSError):
            if os.read(self.asked[0], 1):
                for name in ("uid_map", "gid_map"):
                    with open(f"/proc/{pid}/{name}", "w") as file:
                        file.write(_to_themselves(f"/proc/self/{name}"))
                os.write(self.granted[1], b"y")
        for fd in (self.asked[0], *self.granted):
            os.close(fd)

    def enter(self) -> None:
        """Take the views on, and give up what could undo them."""
        if not self.views:
            return
        kept = system.bounding_set() & ~(1 << system.CAP_SYS_ADMIN)
        system.unshare(system.CLONE_NEWNS | (system.CLONE_NEWUSER if self.apart else 0))
        if self.apart:
            self._be_mapped()
        system.mount("none", "/", "", system.MS_REC | system.MS_PRIVATE)
        for view in self.views:
            _mount(view)
        for path in list(_block_devices()):  # the same files, past every mount
            _hide(path)
        if shut := [port for view in self.views for port in view.shut]:
            ports.shut(shut)
        system.limit_capabilities(kept)

    def shut(self) -> None:
        """Do nothing: the capabilities needed to undo a view were already dropped."""

    def _be_mapped(self) -> None:
        os.close(self.granted[1])
        os.write(self.asked[1], b"?")
        if os.read(self.granted[0], 1) != b"y":
            raise PermissionError(errno.EPERM, "the box could not map the ids of a limited program")


def refusal(folder: str, shut: Sequence[int]) -> str:
    """Why no program of this box can be given a view: tried on `folder`, which is ours, and on a port beside those to
    be shut, where there are some. Nothing where it can."""
    hidden = f"{folder}/hidden"
    os.makedirs(hidden, mode=0o700, exist_ok=True)
    with open(f"{hidden}/file", "w"):
        pass
    read, write = os.pipe()
    listener = socket.create_server(("127.0.0.1", 0)) if shut else None
    tried = [listener.getsockname()[1]] if listener else []
    keeper = os.fork()
    if keeper == 0:
        try:
            _try(ViewIsolation(View([folder], [hidden], [], shut=[*shut, *tried])), hidden, tried, write)
        finally:
            os._exit(1)
    os.close(write)
    with open(read, errors="replace") as answer:
        said = answer.read()
    with contextlib.suppress(ChildProcessError):
        os.waitpid(keeper, 0)
    if listener:
        listener.close()
    return "" if said == _HOLDS else said or "a trial of it ended without a word"


def _try(isolation: ViewIsolation, hidden: str, tried: Sequence[int], told: int) -> None:
    child = os.fork()
    if child == 0:
        try:
            isolation.enter()
            said = _HOLDS if _holds(hidden) else "mounts there do not keep a program out"
            if not all(map(ports.holds, tried)):
                said = "a program there reaches ports that are shut to it"
        except OSError as error:
            said = str(error.strerror or error)
        os.write(told, said.encode())
        os._exit(0)
    isolation.admit(child)
    os.waitpid(child, 0)


def _holds(hidden: str) -> bool:
    try:
        with open(f"{os.path.dirname(hidden)}/new", "w"):
            return False
    except OSError:
        return not os.path.lexists(f"{hidden}/file")


def _to_themselves(path: str) -> str:
    """The map of our own namespace, range by range, each to itself."""
    with open(path) as file:
        ranges = [line.split() for line in file]
    return "\n".join(f"{first} {first} {count}" for first, _, count in ranges) or _EVERY_ID


def _mount(view: View) -> None:
    """Exceptions first, as mounts of their own: what is made read-only afterwards leaves them out."""
    writable = [os.path.realpath(path) for path in view.writable if os.path.lexists(path)]
    for path in writable:
        with _where_it_exists():
            system.mount(path, path, "", system.MS_BIND | system.MS_REC)
    for path in map(os.path.realpath, view.read_only):
        with _where_it_exists():
            if path != "/":
                system.mount(path, path, "", system.MS_BIND | system.MS_REC)
            _make_read_only(path, writable)
    for path in map(os.path.realpath, view.hidden):
        with _where_it_exists():
            _hide(path)


def _hide(path: str) -> None:
    if os.path.isdir(path):
        system.mount("tmpfs", path, "tmpfs", system.MS_RDONLY | system.MS_NOSUID | system.MS_NODEV, "size=4k,mode=0")
    else:
        system.mount("/dev/null", path, "", system.MS_BIND)


def _block_devices(top: str = "/dev") -> Iterator[str]:
    """Disks of the machine, where the box is one of its own."""
    own = os.lstat(top).st_dev
    for folder, names, files in os.walk(top):
        paths = {name: f"{folder}/{name}" for name in (*names, *files)}
        modes = {name: os.lstat(path) for name, path in paths.items() if os.path.lexists(path)}
        names[:] = [name for name in names if name in modes and modes[name].st_dev == own]
        yield from (paths[name] for name in files if name in modes and stat.S_ISBLK(modes[name].st_mode))


def _make_read_only(top: str, writable: Sequence[str]) -> None:
    for point, flags in _mounts(top).items():
        if not any(_below(point, path) for path in writable):
            system.mount("none", point, "", system.MS_REMOUNT | system.MS_BIND | system.MS_RDONLY | flags)


def _mounts(top: str) -> Mapping[str, int]:
    """Mount points at and below `top` that a path leads to, with the flags they have: none of them may be lost."""
    found: dict[str, int] = {}
    for point, flags in _table():
        if _below(point, top) and os.path.lexists(point):
            found[point] = flags
    return found


def _table() -> Iterator[tuple[str, int]]:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as rows:
        for row in rows:
            fields = row.split(" ")
            point = re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), fields[4])
            yield point, sum(_OPTIONS.get(word, 0) for word in fields[5].split(","))


def _below(path: str, top: str) -> bool:
    return top == "/" or path == top or path.startswith(f"{top}/")


def _where_it_exists() -> contextlib.AbstractContextManager[None]:
    return contextlib.suppress(FileNotFoundError, NotADirectoryError)
