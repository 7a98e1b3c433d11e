"""The walking side of a transfer: files as a stream of records. Either side may be the box.

A record is a length, a JSON row (kind, name, mode, size, link target, owner), and for a file exactly `size` bytes. The
walk goes through directory descriptors and never follows a link it finds.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from benchflow_boxkit.inside.passing import LARGE, PassedFile
from benchflow_boxkit.inside.wire import Message, Refused, describe

LENGTH = struct.Struct(">I")
_CHUNK = 1 << 18
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_FOLDER = _READ | os.O_DIRECTORY

Skip = Callable[[str, bool], bool]
"""Relative path and whether it is a directory: leave it out?"""
PASSED = "passed"
"""Said of a file in its row whose descriptor comes with the row instead of its bytes behind it."""


class Limits(NamedTuple):
    max_bytes: int = 1 << 62
    max_entries: int = 1 << 62
    max_depth: int = 200


class Budget:
    """Counts what is left of the limits. Both sides count, since neither has to believe the other."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.bytes, self.entries = limits, limits.max_bytes, limits.max_entries

    def entry(self, depth: int) -> None:
        self.entries -= 1
        if self.entries < 0:
            raise Refused(f"more than {self.limits.max_entries} entries")
        if depth > self.limits.max_depth:
            raise Refused(f"deeper than {self.limits.max_depth} directories")

    def size(self, count: int) -> None:
        self.bytes -= count
        if self.bytes < 0:
            raise Refused(f"more than {self.limits.max_bytes} bytes")


def record(kind: str, name: str = "", info: os.stat_result | None = None, extra: object = "") -> bytes:
    if info is None:
        return row(kind, name, extra=extra)
    return row(kind, name, stat.S_IMODE(info.st_mode), info.st_size, extra, (info.st_uid, info.st_gid))


def row(
    kind: str, name: str = "", mode: int = 0, size: int = 0, extra: object = "", owner: tuple[int, int] = (0, 0)
) -> bytes:
    body = json.dumps([kind, name, mode, size, extra, owner], separators=(",", ":")).encode()
    return LENGTH.pack(len(body)) + body


def records(source: str, limits: Limits | None = None, *, links: bool, skip: Skip | None = None) -> Iterator[bytes]:
    """Yield the file `source`, or the contents of the directory. What goes wrong is the last record."""
    for part in passed_records(source, limits, links=links, skip=skip, large=None):
        assert isinstance(part, bytes)
        yield part


def passed_records(
    source: str, limits: Limits | None = None, *, links: bool, skip: Skip | None = None, large: int | None = LARGE
) -> Iterator[bytes | PassedFile]:
    """As `records`, with files of at least `large` bytes as descriptors, which are the receiver's to close."""
    try:
        yield from _Walk(limits or Limits(), links, skip, large).top(source)
        yield record("end")
    except (OSError, Refused) as error:
        yield failure(error)


def below(folder: str) -> Iterator[bytes]:
    """Yield everything in a directory, without the directory itself."""
    walk = _Walk(Limits(), True, None, None).top(folder)
    next(walk)
    for part in walk:
        assert isinstance(part, bytes)
        yield part


def batch(records: Iterator[bytes], wanted: int) -> bytes:
    """Return the next of them, until there are `wanted` bytes; fewer: that was all."""
    parts, size = [], 0
    for part in records:
        parts.append(part)
        size += len(part)
        if size >= wanted:
            break
    return b"".join(parts)


def failure(error: BaseException) -> bytes:
    told: Message = describe(error)
    return record("error", extra=told)


class _Walk:
    def __init__(self, limits: Limits, links: bool, skip: Skip | None, large: int | None) -> None:
        self.budget, self.links, self.skip, self.large = Budget(limits), links, skip, large

    def top(self, source: str) -> Iterator[bytes | PassedFile]:
        info = os.lstat(source)
        if stat.S_ISDIR(info.st_mode):
            fd = os.open(source, _FOLDER)
            try:
                yield record("top", "", info)
                yield from self.tree(fd, "", 1)
            finally:
                os.close(fd)
        elif stat.S_ISREG(info.st_mode):
            yield from self.file("top-file", "", None, source)
        else:
            raise Refused(f"{source} is neither a file nor a directory")

    def tree(self, fd: int, relative: str, depth: int) -> Iterator[bytes | PassedFile]:
        with os.scandir(fd) as found:
            names = sorted(entry.name for entry in found)
        for name in names:
            path = f"{relative}/{name}" if relative else name
            with contextlib.suppress(FileNotFoundError):
                yield from self.entry(fd, name, path, depth)

    def entry(self, parent: int, name: str, path: str, depth: int) -> Iterator[bytes | PassedFile]:
        info = os.stat(name, dir_fd=parent, follow_symlinks=False)
        is_dir = stat.S_ISDIR(info.st_mode)
        if self.skip and self.skip(path, is_dir):
            return
        self.budget.entry(depth)
        if is_dir:
            fd = os.open(name, _FOLDER, dir_fd=parent)
            try:
                yield record("dir", name, info)
                yield from self.tree(fd, path, depth + 1)
                yield record("up")
            finally:
                os.close(fd)
        elif stat.S_ISREG(info.st_mode):
            yield from self.file("file", name, parent)
        elif stat.S_ISLNK(info.st_mode) and self.links:
            yield record("link", name, info, os.readlink(name, dir_fd=parent))

    def file(self, kind: str, name: str, parent: int | None, path: str = "") -> Iterator[bytes | PassedFile]:
        fd = os.open(path or name, _READ, dir_fd=parent)
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):  # swapped since it was looked at
                return
            self.budget.size(info.st_size)
            if self.large is not None and info.st_size >= self.large:
                yield PassedFile(record(kind, name, info, PASSED), os.dup(fd))
                return
            yield record(kind, name, info)
            yield from contents(fd, info.st_size)
        finally:
            os.close(fd)


def contents(fd: int, size: int) -> Iterator[bytes]:
    """Exactly `size` bytes, whatever becomes of the file meanwhile."""
    while size > 0:
        data = os.read(fd, min(size, _CHUNK)) or b"\0" * min(size, _CHUNK)
        size -= len(data)
        yield data
