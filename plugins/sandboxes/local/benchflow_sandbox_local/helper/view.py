"""Access views: one program sees some paths read-only or not at all.

It gets mounts of its own, which it may not undo, and a user namespace of its own: without that it could look at the
same files through another process's /proc/PID/root.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

from benchflow_sandbox_local.helper import linux


class Gate:
    """Between the first process, which alone may write the id maps, and the child that needs them."""

    def __init__(self, wanted: dict[str, list[str]], *, single_user: bool) -> None:
        self.wanted, self.single_user = wanted, single_user
        self.asked = os.pipe2(os.O_CLOEXEC)
        self.granted = os.pipe2(os.O_CLOEXEC)

    def open_for(self, pid: int) -> None:
        """In the first process: map the child's ids to themselves. Without a map the child says so and ends."""
        try:
            os.close(self.asked[1])
            if os.read(self.asked[0], 1):
                if self.single_user:
                    _write(f"/proc/{pid}/setgroups", "deny")
                for name in ("uid_map", "gid_map"):
                    _write(f"/proc/{pid}/{name}", _to_themselves(f"/proc/self/{name}"))
                os.write(self.granted[1], b"y")
        except OSError:
            pass
        finally:
            for fd in (self.asked[0], *self.granted):
                os.close(fd)

    def enter(self) -> None:
        """In the child: take the view on."""
        linux.prctl(linux.PR_SET_DUMPABLE, 1)  # else the maps belong to nobody and cannot be written
        linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNS)
        os.close(self.granted[1])
        os.write(self.asked[1], b"?")
        if os.read(self.granted[0], 1) != b"y":
            raise OSError(1, "the box could not map the ids of a limited program")
        _mount(self.wanted)


def _to_themselves(path: str) -> str:
    """The map of our own namespace, range by range, each to itself."""
    with open(path) as file:
        ranges = [line.split() for line in file]
    return "\n".join(f"{first} {first} {count}" for first, _, count in ranges)


def _mount(wanted: dict[str, Any]) -> None:
    for path in wanted["read_only"]:
        with _where_it_exists():
            if path != "/":
                linux.bind(path, path)
            linux.mount_setattr(path, linux.MOUNT_ATTR_RDONLY, recursive=True)
    for path in wanted["writable"]:
        with _where_it_exists():
            linux.bind(path, path)
            try:
                linux.mount_setattr(path, 0, clear=linux.MOUNT_ATTR_RDONLY, recursive=True)
            except PermissionError:  # below it are mounts that the box itself has read-only: they stay so
                linux.mount_setattr(path, 0, clear=linux.MOUNT_ATTR_RDONLY, recursive=False)
    for path in wanted["hidden"]:
        with _where_it_exists():
            if os.path.isdir(path):
                linux.mount(
                    "tmpfs", path, "tmpfs", linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV, "size=4k,mode=0"
                )
            else:
                linux.bind("/dev/null", path, recursive=False)


def _where_it_exists() -> contextlib.AbstractContextManager[None]:
    return contextlib.suppress(FileNotFoundError, NotADirectoryError)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
