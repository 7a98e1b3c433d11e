"""Files in and out. What comes out is untrusted: no link is followed, and the limits hold."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from benchflow_core.contracts import DownloadLimits
from benchflow_core.errors import TransferRefused

BLOCK = 1 << 20


def copy_in(source: Path, target: Path, mode: int | None) -> None:
    """A file, or the contents of a folder, to exactly `target`; links that are in the way are replaced."""
    if not source.exists():
        raise FileNotFoundError(str(source))
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        _clear(target, keep_folder=True)
        target.mkdir(exist_ok=True)
        for entry in sorted(source.iterdir()):
            _copy_entry(entry, target / entry.name)
    else:
        _copy_entry(source.resolve(), target)
    if mode is not None:
        target.chmod(mode)


def _copy_entry(source: Path, target: Path) -> None:
    folder = source.is_dir() and not source.is_symlink()
    _clear(target, keep_folder=folder)
    if source.is_symlink():
        target.symlink_to(source.readlink())
    elif folder:
        target.mkdir(exist_ok=True)
        for entry in sorted(source.iterdir()):
            _copy_entry(entry, target / entry.name)
    else:
        shutil.copyfile(source, target)
        shutil.copymode(source, target)


def _clear(target: Path, *, keep_folder: bool) -> None:
    if target.is_symlink() or target.is_file():
        target.unlink()
    elif target.is_dir() and not keep_folder:
        shutil.rmtree(target)


@dataclass
class _Budget:
    limits: DownloadLimits
    bytes: int = 0
    entries: int = 0

    def take(self, entries: int = 0, size: int = 0) -> None:
        self.entries += entries
        self.bytes += size
        if self.bytes > self.limits.max_bytes or self.entries > self.limits.max_entries:
            raise TransferRefused(f"The download holds more than {self.limits} allows.")


def copy_out(box: Path, source: str, target: Path, limits: DownloadLimits) -> None:
    """Every step is taken from an open folder and without following links, so a swap under our feet changes nothing."""
    relative = os.path.relpath(os.path.normpath(source), box)
    parts = [] if relative == "." else relative.split("/")
    if ".." in parts:
        raise FileNotFoundError(f"{source} is outside the box")
    folder = os.open(box, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            inner = _open(folder, part, os.O_DIRECTORY, source)
            os.close(folder)
            folder = inner
        target.parent.mkdir(parents=True, exist_ok=True)
        if not _copy(folder, parts[-1] if parts else ".", target, _Budget(limits), 0):
            raise FileNotFoundError(f"{source} is neither a file nor a folder")
    finally:
        os.close(folder)


def _open(folder: int, name: str, flags: int, source: str) -> int:
    try:
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | flags, dir_fd=folder)
    except OSError as error:
        raise FileNotFoundError(errno.ENOENT, "no such file", source) from error


def _copy(folder: int, name: str, target: Path, budget: _Budget, depth: int) -> bool:
    """False where there is nothing that may be copied: a link, a device, or gone."""
    try:
        kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
            return False
        inner = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except PermissionError:
        target.mkdir(exist_ok=True)
        return True
    except OSError:
        return False
    try:
        found = os.fstat(inner)
        if stat.S_ISDIR(found.st_mode):
            _copy_folder(inner, target, budget, depth)
        elif stat.S_ISREG(found.st_mode):
            budget.take(size=found.st_size)
            _copy_file(inner, target, found)
        else:
            return False
        return True
    finally:
        os.close(inner)


def _copy_folder(folder: int, target: Path, budget: _Budget, depth: int) -> None:
    if depth > budget.limits.max_depth:
        raise TransferRefused(f"The download is deeper than {budget.limits.max_depth} folders.")
    target.mkdir(mode=0o755, exist_ok=True)
    for name in sorted(os.listdir(folder)):
        budget.take(entries=1)
        _copy(folder, name, target / name, budget, depth + 1)


def _copy_file(source: int, target: Path, found: os.stat_result) -> None:
    """At most as many bytes as were budgeted, should the file grow meanwhile."""
    left = found.st_size
    with open(target, "wb") as out:
        while left and (data := os.read(source, min(BLOCK, left))):
            left -= len(data)
            out.write(data)
    target.chmod(0o755 if found.st_mode & 0o100 else 0o644)
