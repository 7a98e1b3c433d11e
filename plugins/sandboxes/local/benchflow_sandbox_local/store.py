"""Images and layers on disk: made once under a lock, whoever asks, in this process or another."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import stat
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

__all__ = ["Locks", "digest", "tree_digest"]

_POLL = 0.05


class Locks:
    """One holder per name, across tasks and processes. A lock dies with its process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[None]:
        fd = os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await asyncio.sleep(_POLL)
            yield
        finally:
            os.close(fd)


def digest(parts: Iterable[str | bytes]) -> str:
    """Each part by its length, so that no two lists of parts are the same text."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogateescape") if isinstance(part, str) else part
        total.update(b"%d:" % len(data) + data)
    return total.hexdigest()


def tree_digest(root: Path) -> str:
    """Names, modes and contents below a folder; a link counts as a link."""
    rows: list[str] = []
    for folder, dirs, names in os.walk(root):
        dirs.sort()
        for name in sorted([*names, *(d for d in dirs if os.path.islink(os.path.join(folder, d)))]):
            path = os.path.join(folder, name)
            info = os.lstat(path)
            content = "other"
            if stat.S_ISLNK(info.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(info.st_mode):
                with open(path, "rb") as file:
                    content = hashlib.file_digest(file, "sha256").hexdigest()
            rows += [os.path.relpath(path, root), oct(info.st_mode), content]
        rows.append(os.path.relpath(folder, root))
    return digest(rows)
