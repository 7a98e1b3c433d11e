"""Files of an image made the box's own, before any program of the box runs.

An overlay in a user namespace cannot tell that a file it copied up is the one that it showed before: a new hard link
has another inode number than its source, and whoever holds the old file open or locked holds another file. git
refuses to clone a repository for that reason. A file that the box itself wrote has none of this.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from typing import Final, NamedTuple

from benchflow_sandbox_local.helper import tree

_MAKING: Final = ".benchflow-own"
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_WORKDIR: Final = (200, 16 << 20)
_REPOSITORIES: Final = (8_000, 128 << 20)


class _Folder(NamedTuple):
    path: str
    info: os.stat_result
    files: list[tuple[str, os.stat_result]]


class _Budget:
    """What may be looked at, in entries, and copied, in bytes on disk."""

    def __init__(self, entries: int, size: int) -> None:
        self.entries, self.size = entries, size


def take(workdir: str, repositories: Sequence[str]) -> None:
    """The working directory if it is small, and the objects of git's repositories as far as they are not too large.

    Each of these all or not at all. `repositories`: their `objects` directories.
    """
    workdir, taken = os.path.normpath(workdir), ""
    if workdir not in ("/", ".") and _take(workdir, _Budget(*_WORKDIR)):
        taken = f"{workdir}/"
    budget = _Budget(*_REPOSITORIES)
    for path in repositories:
        budget.entries -= 1
        if budget.entries > 0 and not (taken and path.startswith(taken)):
            _take(path, budget)


def _take(top: str, budget: _Budget) -> bool:
    """Done? A link that somebody put there leads elsewhere; what cannot be done leaves the box as good as before."""
    with contextlib.suppress(OSError):
        if os.path.realpath(top) == top and os.path.isdir(top):
            folders = _find(top, budget)
            if folders:
                _rewrite(folders)
            return bool(folders)
    return False


def _find(top: str, budget: _Budget) -> list[_Folder]:
    """The folders with files below `top` that are in the same file system; none if there are too many."""
    found: list[_Folder] = []
    device, size = os.lstat(top).st_dev, 0
    pending = [top]
    while pending:
        path = pending.pop()
        files: list[tuple[str, os.stat_result]] = []
        with os.scandir(path) as entries:
            for entry in entries:
                budget.entries -= 1
                info = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(info.st_mode):
                    size += info.st_blocks * 512
                    files.append((entry.name, info))
                elif stat.S_ISDIR(info.st_mode) and info.st_dev == device:
                    pending.append(entry.path)
                if budget.entries < 0 or size > budget.size or entry.name == _MAKING:
                    return []
        if files:
            found.append(_Folder(path, os.lstat(path), files))
    budget.size -= size
    return found


def _rewrite(folders: list[_Folder]) -> None:
    """Each file copied and put in place of itself; names of one file stay names of one file."""
    made: dict[tuple[int, int], str] = {}
    for folder in folders:
        at = os.open(folder.path, _FOLDER)
        try:
            for name, info in folder.files:
                first = made.get((info.st_dev, info.st_ino))
                if first is None:
                    tree.copy_entry(name, info, at, at, _MAKING)
                else:
                    os.link(first, _MAKING, dst_dir_fd=at, follow_symlinks=False)
                os.rename(_MAKING, name, src_dir_fd=at, dst_dir_fd=at)
                if info.st_nlink > 1:
                    made[(info.st_dev, info.st_ino)] = f"{folder.path}/{name}"
        finally:
            tree.remove(_MAKING, at)
            os.utime(at, ns=(folder.info.st_atime_ns, folder.info.st_mtime_ns))
            os.close(at)
