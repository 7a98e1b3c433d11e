"""Putting paths back to what another box, on the image, has there. Nothing is written through a link."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Any

from benchflow_boxkit.inside import receiving, sending
from benchflow_boxkit.inside.wire import Refused

_FOLDER = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY


def records(paths: list[list[Any]]) -> Iterator[bytes]:
    """For each path, and whether all below it is wanted: what there is here, its parents first."""
    try:
        for path, deep in paths:
            yield from _one(str(path), bool(deep))
        yield sending.record("end")
    except (OSError, Refused) as error:
        yield sending.failure(error)


def _one(path: str, deep: bool) -> Iterator[bytes]:
    try:
        info = os.lstat(path)
    except OSError:
        yield sending.record("gone", path)
        return
    parents = []
    for parent in _parents(path):
        found = os.lstat(parent)
        parents.append([stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid])
    yield sending.record("at", path, info, parents)
    name = os.path.basename(path)
    if stat.S_ISDIR(info.st_mode):
        yield sending.record("dir", name, info)
        if deep:
            yield from sending.below(path)
        yield sending.record("up")
    elif stat.S_ISLNK(info.st_mode):
        yield sending.record("link", name, info, os.readlink(path))
    elif stat.S_ISREG(info.st_mode):
        yield sending.record("file", name, info)
        with open(path, "rb") as file:
            yield from sending.contents(file.fileno(), info.st_size)


def _parents(path: str) -> list[str]:
    parts = path.strip("/").split("/")[:-1]
    return ["/" + "/".join(parts[: n + 1]) for n in range(len(parts))]


class Reverting(receiving.Receiver):
    """Takes what `records` gives."""

    def __init__(self) -> None:
        super().__init__("/", None, receiving.Placement(-1, -1))

    def _accept(self, entry: receiving.Entry) -> None:
        if entry.kind == "gone":
            remove(entry.name)
        elif entry.kind == "at":
            self.close()
            self.stack = [_open_parent(entry.name, entry.extra)]
        else:
            super()._accept(entry)


def _open_parent(path: str, parents: list[list[int]]) -> int:
    """The directory that holds `path`: links and files in the way are replaced by directories as the image has them."""
    fd = os.open("/", _FOLDER)
    for name, (mode, uid, gid) in zip(path.strip("/").split("/")[:-1], parents, strict=True):
        try:
            below = os.open(name, _FOLDER, dir_fd=fd)
        except OSError:
            receiving.clear(name, fd)
            os.mkdir(name, 0o700, dir_fd=fd)
            below = os.open(name, _FOLDER, dir_fd=fd)
            os.fchown(below, uid, gid)
            os.fchmod(below, mode)
        os.close(fd)
        fd = below
    return fd


def remove(path: str) -> None:
    """What the image does not have; under a link or a file there is nothing to remove."""
    *folders, name = path.strip("/").split("/")
    fd = os.open("/", _FOLDER)
    try:
        for folder in folders:
            below = os.open(folder, _FOLDER, dir_fd=fd)
            os.close(fd)
            fd = below
        receiving.clear(name, fd)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        if error.errno != 40:  # ELOOP
            raise
    finally:
        os.close(fd)
