"""The writing side of a transfer."""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from benchflow_sandbox_local.helper import tree, wire
from benchflow_sandbox_local.helper.transfer import Budget, Entries, Limits, Refused, revive

_CHUNK = 1 << 30
_BUFFER = 1 << 20
_FOLDER = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class Placement(NamedTuple):
    """How received files are owned. `uid` None leaves them to the process that writes; -1 takes the sender's."""

    uid: int | None = None
    gid: int | None = None
    mode: int | None = None
    least: int = 0
    """Permission bits that every entry gets, so that the owner can read what a box made unreadable. With any, nobody
    else may write there: a box does not open the host's folders."""


class _Receiver:
    def __init__(self, target: str, limits: Limits, place: Placement) -> None:
        self.target, self.place, self.budget = target, place, Budget(limits)
        self.stack: list[int] = []

    def accept(self, entry: list[Any], fds: Iterator[int]) -> None:
        kind, name, mode, _, extra, owner = entry
        if kind == "up":
            os.close(self.stack.pop())
            return
        if kind == "top":
            self.stack.append(self._open_top(mode, owner))
            return
        if kind == "top-file":
            if os.path.isdir(self.target) and not os.path.islink(self.target):
                raise IsADirectoryError(errno.EISDIR, "is a directory", self.target)
            parent = os.open(os.path.dirname(self.target) or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self.stack.append(parent)
            name = os.path.basename(self.target)
        self.budget.entry(len(self.stack))
        if not name or name in (".", "..") or "/" in name or "\0" in name or not self.stack:
            raise Refused(f"unsafe name {name!r}")
        if kind == "dir":
            self.stack.append(self._folder(name, mode, owner))
        elif kind == "link":
            self._clear(name)
            os.symlink(extra, name, dir_fd=self.stack[-1])
            self._own(owner, name)
        else:
            self._file(name, mode, owner, next(fds))

    def _open_top(self, mode: int, owner: list[int] | None) -> int:
        """The directory `target` itself, made if need be; one that was there keeps its mode and owner."""
        try:
            return os.open(self.target, _FOLDER)
        except NotADirectoryError:
            os.unlink(self.target)
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            os.unlink(self.target)
        os.mkdir(self.target, 0o700)
        fd = os.open(self.target, _FOLDER)
        self._finish(fd, mode, owner, folder=True)
        return fd

    def _folder(self, name: str, mode: int, owner: list[int] | None) -> int:
        parent = self.stack[-1]
        try:
            os.mkdir(name, 0o700, dir_fd=parent)
        except FileExistsError:
            if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=parent)
                os.mkdir(name, 0o700, dir_fd=parent)
        fd = os.open(name, _FOLDER, dir_fd=parent)
        self._finish(fd, mode, owner, folder=True)
        return fd

    def _file(self, name: str, mode: int, owner: list[int] | None, source: int) -> None:
        self._clear(name)
        fd = os.open(name, _NEW, 0o600, dir_fd=self.stack[-1])
        try:
            copy_contents(source, fd, self.budget.size)
            self._finish(fd, mode, owner, folder=False)
        finally:
            os.close(fd)

    def _clear(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self.stack[-1])
        except FileNotFoundError:
            pass
        except IsADirectoryError:
            tree.remove(name, self.stack[-1])

    def _finish(self, fd: int, mode: int, owner: list[int] | None, *, folder: bool) -> None:
        self._own(owner, fd)
        wanted = self.place.mode
        if wanted is not None:
            mode = wanted | (wanted & 0o444) >> 2 if folder else wanted
        least = 0o700 if folder and self.place.least else self.place.least
        allowed = 0o755 if least else 0o7777 if self.place.uid == -1 else 0o777
        os.fchmod(fd, mode & allowed | least)

    def _own(self, owner: list[int] | None, what: int | str) -> None:
        uid, gid = self.place.uid, self.place.gid
        if uid == -1 and owner:
            uid, gid = owner
        if uid is None or gid is None or uid == -1:
            return
        if isinstance(what, int):
            os.fchown(what, uid, gid)
        else:
            os.chown(what, uid, gid, dir_fd=self.stack[-1], follow_symlinks=False)


def write_entries(entries: Entries, fds: list[int], target: str, limits: Limits, place: Placement) -> None:
    """Write one batch that is everything."""
    receiver = _Receiver(target, limits, place)
    try:
        unused = iter(fds)
        for entry in entries:
            receiver.accept(entry, unused)
    finally:
        wire.close_fds(receiver.stack)


def receive(sock: socket.socket, target: str, limits: Limits | None = None, place: Placement | None = None) -> None:
    """Write what the other side sends to exactly `target`. Raises what went wrong, there or here."""
    receiver = _Receiver(target, limits or Limits(), place or Placement())
    try:
        while True:
            message, fds = wire.receive(sock)
            try:
                if "error" in message:
                    raise revive(message["error"])
                if message.get("end"):
                    return
                unused = iter(fds)
                for entry in message["entries"]:
                    receiver.accept(entry, unused)
            finally:
                wire.close_fds(fds)
    finally:
        wire.close_fds(receiver.stack)


def copy_contents(source: int, target: int, account: Callable[[int], None]) -> None:
    """All bytes of a regular file, in the kernel where it can; `account` is told before each piece is written."""
    remaining = os.fstat(source).st_size
    offset = 0
    while remaining > 0:
        piece = min(remaining, _CHUNK)
        account(piece)
        copied = _copy_piece(source, target, offset, piece)
        if not copied:
            return  # it shrank while we read
        account(copied - piece)
        remaining -= copied
        offset += copied


def _copy_piece(source: int, target: int, offset: int, count: int) -> int:
    if sys.platform == "linux":
        try:
            if copied := os.copy_file_range(source, target, count, offset, offset):
                return copied
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF):
                raise
        os.lseek(target, offset, os.SEEK_SET)
        return os.sendfile(target, source, offset, count)
    return os.pwrite(target, os.pread(source, min(count, _BUFFER), offset), offset)
