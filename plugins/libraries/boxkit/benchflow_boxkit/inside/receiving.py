"""The writing side of a transfer. It accepts single path components only and follows no link, whatever it is sent."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from benchflow_boxkit.inside import passing
from benchflow_boxkit.inside.sending import LENGTH, PASSED, Budget, Limits
from benchflow_boxkit.inside.wire import Refused, revive

_FOLDER = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_MAX_ROW = 1 << 20
_DEEP = 200


class Placement(NamedTuple):
    """How received files are owned. `uid` None leaves them to the process that writes; -1 takes the sender's."""

    uid: int | None = None
    gid: int | None = None
    mode: int | None = None
    least: int = 0
    """Permission bits that every entry gets, so that the owner can read what a box made unreadable. With any, nobody
    else may write there: a box does not open the host's folders."""


class Entry(NamedTuple):
    """One row of a transfer, checked. The sender may be an agent's program that writes what it likes."""

    kind: str
    name: str
    mode: int
    size: int
    extra: Any
    owner: list[int]

    @classmethod
    def parse(cls, data: bytes) -> Entry:
        try:
            kind, name, mode, size, extra, owner = json.loads(data)
        except (ValueError, TypeError, RecursionError) as error:
            raise Refused("a row of the transfer makes no sense") from error
        numbers = (mode, size, *owner) if isinstance(owner, list) and len(owner) == 2 else (None,)
        whole = all(type(number) is int and 0 <= number < 1 << 63 for number in numbers)
        if not (isinstance(kind, str) and isinstance(name, str) and whole):
            raise Refused("a row of the transfer makes no sense")
        return cls(kind, name, mode, size, extra, owner)


class Receiver:
    """Write a transfer, fed as it comes, to exactly `target`. Raises what went wrong here or at the sender's end."""

    def __init__(
        self, target: str, limits: Limits | None = None, place: Placement | None = None, *, links: bool = True
    ) -> None:
        self.target, self.place, self.budget = target, place or Placement(), Budget(limits or Limits())
        self.links = links
        self.stack: list[int] = []
        self.done = False
        self.sender_failed = False
        self._buffer = bytearray()
        self._file = -1
        self._left = 0
        self._passed: deque[int] = deque()

    def feed(self, data: bytes, descriptors: Sequence[int] = ()) -> None:
        """Take what came, and the descriptors with it."""
        self._passed += descriptors
        self._buffer += data
        at = 0
        while not self.done:
            if self._left:
                with memoryview(self._buffer) as view:
                    count = os.write(self._file, view[at : at + self._left]) if at < len(view) else 0
                if not count:
                    break
                at, self._left = at + count, self._left - count
                if not self._left:
                    self._end_file()
                continue
            row, after = self._row(at)
            if row is None:
                break
            at = after
            self._accept(row)
        del self._buffer[:at]

    def _row(self, at: int) -> tuple[Entry | None, int]:
        if len(self._buffer) - at < LENGTH.size:
            return None, at
        length = LENGTH.unpack_from(self._buffer, at)[0]
        end = at + LENGTH.size + length
        if length > _MAX_ROW:
            raise Refused("a row of the transfer is too long")
        if len(self._buffer) < end:
            return None, at
        return Entry.parse(bytes(self._buffer[at + LENGTH.size : end])), end

    def _accept(self, entry: Entry) -> None:
        top = entry.kind in ("top", "top-file")
        if entry.kind == "end":
            self.done = True
        elif entry.kind == "error":
            self.sender_failed = True
            raise revive(entry.extra)
        elif top == bool(self.stack):
            raise Refused(f"a row of kind {entry.kind!r} is out of place")
        elif entry.kind == "up":
            os.close(self.stack.pop())
        elif entry.kind == "top":
            self.stack.append(self._open_top(entry.mode, entry.owner))
        else:
            self._entry(entry._replace(name=self._open_parent()) if top else entry)

    def _open_parent(self) -> str:
        if os.path.isdir(self.target) and not os.path.islink(self.target):
            raise IsADirectoryError(errno.EISDIR, "is a directory", self.target)
        self.stack.append(os.open(os.path.dirname(self.target) or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        return os.path.basename(self.target)

    def _entry(self, entry: Entry) -> None:
        name = entry.name
        self.budget.entry(len(self.stack))
        if not name or name in (".", "..") or "/" in name or "\0" in name:
            raise Refused(f"unsafe name {name!r}")
        if entry.kind == "dir":
            self.stack.append(self._folder(name, entry.mode, entry.owner))
        elif entry.kind == "link" and self.links:
            clear(name, self.stack[-1])
            os.symlink(str(entry.extra), name, dir_fd=self.stack[-1])
            if found := self._owner(entry.owner):
                os.chown(name, *found, dir_fd=self.stack[-1], follow_symlinks=False)
        elif entry.kind in ("file", "top-file"):
            self.budget.size(entry.size)
            self._file = self._open_file(name, self._mode(entry.mode, folder=False))
            self._finish(self._file, self._mode(entry.mode, folder=False), entry.owner)
            if entry.extra == PASSED:
                self._copy(entry.size)
                return
            self._left = entry.size
            if not self._left:
                self._end_file()
        else:
            raise Refused(f"unexpected kind {entry.kind!r}")

    def _copy(self, size: int) -> None:
        """Copy a file whose descriptor was passed."""
        if not self._passed:
            raise Refused("a file of the transfer did not come with its row")
        source = self._passed.popleft()
        try:
            if not stat.S_ISREG(os.fstat(source).st_mode):
                raise Refused("what was passed as a file is none")
            passing.copy(source, self._file, size)
        finally:
            os.close(source)
        self._end_file()

    def _open_file(self, name: str, mode: int) -> int:
        with contextlib.suppress(FileExistsError):  # mostly there is nothing, and this one call is all it takes
            return os.open(name, _NEW, mode & 0o777, dir_fd=self.stack[-1])
        try:
            clear(name, self.stack[-1])
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            # A file that is itself a mount, as engines make /etc/hosts: it is written where it stands.
            return os.open(name, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=self.stack[-1])
        return os.open(name, _NEW, 0o600, dir_fd=self.stack[-1])

    def _open_top(self, mode: int, owner: list[int]) -> int:
        """The directory `target` itself, made if need be; one that was there keeps its mode and owner."""
        try:
            return os.open(self.target, _FOLDER)
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            os.unlink(self.target)
        os.mkdir(self.target, 0o700)
        fd = os.open(self.target, _FOLDER)
        self._finish(fd, self._mode(mode, folder=True), owner)
        return fd

    def _folder(self, name: str, mode: int, owner: list[int]) -> int:
        parent = self.stack[-1]
        try:
            os.mkdir(name, 0o700, dir_fd=parent)
        except FileExistsError:
            if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=parent)
                os.mkdir(name, 0o700, dir_fd=parent)
        fd = os.open(name, _FOLDER, dir_fd=parent)
        self._finish(fd, self._mode(mode, folder=True), owner)
        return fd

    def _end_file(self) -> None:
        os.close(self._file)
        self._file = -1

    def _mode(self, mode: int, *, folder: bool) -> int:
        wanted = self.place.mode
        if wanted is not None:
            mode = wanted | (wanted & 0o444) >> 2 if folder else wanted
        least = 0o700 if folder and self.place.least else self.place.least
        allowed = 0o755 if least else 0o7777 if self.place.uid == -1 else 0o777
        return mode & allowed | least

    def _owner(self, sent: list[int]) -> tuple[int, int] | None:
        uid, gid = self.place.uid, self.place.gid
        if uid == -1:
            uid, gid = sent
        return None if uid is None or gid is None or uid == -1 else (uid, gid)

    def _finish(self, fd: int, mode: int, sent: list[int]) -> None:
        """Owner and mode, where it has not got them already: to look costs much less than to change."""
        info, owner = os.fstat(fd), self._owner(sent)
        other = owner is not None and owner != (info.st_uid, info.st_gid)
        if owner is not None and other:
            os.fchown(fd, *owner)
        if stat.S_IMODE(info.st_mode) != mode or (other and mode & 0o7000):
            os.fchmod(fd, mode)

    def close(self) -> None:
        for fd in [*self.stack, *([self._file] if self._file >= 0 else [])]:
            with contextlib.suppress(OSError):
                os.close(fd)
        self.stack, self._file = [], -1
        passing.close(self._passed)
        self._passed.clear()


def clear(name: str, parent: int | None = None) -> None:
    """Remove whatever has this name: a link itself, a directory with everything below it."""
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        pass
    except (IsADirectoryError, PermissionError):
        _remove_tree(name, parent)


def _remove_tree(name: str, parent: int | None) -> None:
    """Without recursion and with few descriptors: what lies too deep is first moved to the top."""
    top = os.open(name, _FOLDER, dir_fd=parent)
    stack = [(top, "", _remove_files(top))]
    lifted = 0
    try:
        while stack:
            fd, own_name, folders = stack[-1]
            if folders and len(stack) > _DEEP:
                lifted += 1
                os.rename(folders.pop(), f".deep-{lifted}", src_dir_fd=fd, dst_dir_fd=top)
                stack[0][2].append(f".deep-{lifted}")
            elif folders:
                child_name = folders.pop()
                with contextlib.suppress(FileNotFoundError):
                    child = os.open(child_name, _FOLDER, dir_fd=fd)
                    stack.append((child, child_name, _remove_files(child)))
            else:
                os.close(fd)
                stack.pop()
                if stack:
                    os.rmdir(own_name, dir_fd=stack[-1][0])
    finally:
        for fd, _, _ in stack:
            os.close(fd)
    os.rmdir(name, dir_fd=parent)


def _remove_files(fd: int) -> list[str]:
    """Unlink everything but the directories, and return those."""
    with os.scandir(fd) as found:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    for name, is_folder in entries:
        if not is_folder:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=fd)
    return [name for name, is_folder in entries if is_folder]
