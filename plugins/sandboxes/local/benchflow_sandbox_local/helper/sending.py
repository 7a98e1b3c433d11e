"""The walking side of a transfer."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Callable

from benchflow_sandbox_local.helper import wire
from benchflow_sandbox_local.helper.transfer import Budget, Entries, Limits, Refused, Skip, describe

_BATCH_ENTRIES = 256
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_FOLDER = _READ | os.O_DIRECTORY

Emit = Callable[[Entries, list[int]], None]


class _NotSmall(Exception):
    """It takes more than one message."""


class _Sender:
    def __init__(self, emit: Emit, limits: Limits, *, links: bool, owners: bool, skip: Skip | None) -> None:
        self.emit, self.budget = emit, Budget(limits)
        self.links, self.owners, self.skip = links, owners, skip
        self.entries: Entries = []
        self.fds: list[int] = []
        self.inline = 1 << 62

    def flush(self) -> None:
        entries, fds = self.entries, self.fds
        self.entries, self.fds = [], []
        if entries:
            self.emit(entries, fds)

    def top(self, source: str) -> None:
        info = os.lstat(source)
        if stat.S_ISDIR(info.st_mode):
            fd = os.open(source, _FOLDER)
            try:
                self.add("top", "", info)
                self.tree(fd, "", 1)
            finally:
                os.close(fd)
        elif stat.S_ISREG(info.st_mode):
            self.file("top-file", "", None, source)
        else:
            raise Refused(f"{source} is neither a file nor a directory")
        self.flush()

    def add(self, kind: str, name: str, info: os.stat_result | None = None, extra: str = "") -> None:
        mode = stat.S_IMODE(info.st_mode) if info else 0
        owner = [info.st_uid, info.st_gid] if info and self.owners else None
        self.entries.append([kind, name, mode, info.st_size if info else 0, extra, owner])
        if len(self.entries) >= _BATCH_ENTRIES or len(self.fds) >= wire.MAX_FDS:
            self.flush()

    def tree(self, fd: int, relative: str, depth: int) -> None:
        with os.scandir(fd) as found:
            names = sorted(entry.name for entry in found)
        for name in names:
            path = f"{relative}/{name}" if relative else name
            with contextlib.suppress(FileNotFoundError):
                self.entry(fd, name, path, depth)

    def entry(self, parent: int, name: str, path: str, depth: int) -> None:
        info = os.stat(name, dir_fd=parent, follow_symlinks=False)
        is_dir = stat.S_ISDIR(info.st_mode)
        if self.skip and self.skip(path, is_dir):
            return
        self.budget.entry(depth)
        if is_dir:
            fd = os.open(name, _FOLDER, dir_fd=parent)
            try:
                self.add("dir", name, info)
                self.tree(fd, path, depth + 1)
                self.add("up", "")
            finally:
                os.close(fd)
        elif stat.S_ISREG(info.st_mode):
            self.file("file", name, parent)
        elif stat.S_ISLNK(info.st_mode) and self.links:
            self.add("link", name, info, os.readlink(name, dir_fd=parent))

    def file(self, kind: str, name: str, parent: int | None, path: str = "") -> None:
        fd = os.open(path or name, _READ, dir_fd=parent)
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):  # swapped since it was looked at
            os.close(fd)
            return
        self.fds.append(fd)
        self.budget.size(info.st_size)
        self.inline -= info.st_size
        if self.inline < 0:
            raise _NotSmall
        self.add(kind, name, info)


def send(
    sock: socket.socket,
    source: str,
    limits: Limits | None = None,
    *,
    links: bool = False,
    owners: bool = False,
    skip: Skip | None = None,
) -> None:
    """Send the file `source`, or the contents of the directory. Raises; tells the receiver about it either way."""

    def emit(entries: Entries, fds: list[int]) -> None:
        try:
            wire.send(sock, {"entries": entries}, fds)
        finally:
            wire.close_fds(fds)

    sender = _Sender(emit, limits or Limits(), links=links, owners=owners, skip=skip)
    try:
        sender.top(source)
        wire.send(sock, {"end": True})
    except (OSError, Refused) as error:
        with contextlib.suppress(OSError):
            wire.send(sock, {"error": describe(error)})
        raise
    finally:
        wire.close_fds(sender.fds)


def collect(
    source: str, most: int, limits: Limits | None = None, *, links: bool = True, skip: Skip | None = None
) -> tuple[Entries, list[int]] | None:
    """The same as one batch in memory, or nothing when it is not small: more than one message, or than `most` bytes."""
    batches: list[tuple[Entries, list[int]]] = []
    limits = limits or Limits()

    def emit(entries: Entries, fds: list[int]) -> None:
        batches.append((entries, fds))
        if len(batches) > 1:
            raise _NotSmall

    sender = _Sender(emit, limits, links=links, owners=False, skip=skip)
    sender.inline = most
    try:
        sender.top(source)
        return batches[0]
    except BaseException as error:
        wire.close_fds([*sender.fds, *(fd for _, fds in batches for fd in fds)])
        if isinstance(error, _NotSmall):
            return None
        raise
