"""The content digest of a task folder: what registries pin and results record."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from benchflow_core.errors import TaskError
from benchflow_core.task.files import os_problem

__all__ = ["task_digest"]

_IGNORED_NAME = ".benchflow-source.json"
_CHUNK = 1 << 20


def task_digest(path: Path) -> str:
    """`sha256:<hex>` over every regular file, in order of its POSIX relative path: path, NUL, SHA-256 of the content.

    Links and file modes do not count; everything else does, `.git` included. Dataset registries pin this value, so
    the rule never changes.
    """
    if not path.is_dir():
        raise TaskError(f"task folder {path} does not exist.", details={"file": str(path), "code": "missing-folder"})
    whole = hashlib.sha256()
    for relative, file in sorted(_regular_files(path)):
        content = _file_sha256(file)
        if content is not None:
            whole.update(os.fsencode(relative))
            whole.update(b"\0")
            whole.update(content)
    return f"sha256:{whole.hexdigest()}"


def _regular_files(root: Path) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    folders = [(os.fspath(root), "")]
    while folders:
        folder, prefix = folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append((entry.path, f"{prefix}{entry.name}/"))
                    elif entry.is_file(follow_symlinks=False) and entry.name != _IGNORED_NAME:
                        found.append((prefix + entry.name, entry.path))
        except OSError as error:
            raise os_problem(error, Path(folder)) from error
    return found


def _file_sha256(file: str) -> bytes | None:
    """`None` when the path is no longer a regular file."""
    try:
        # Not blocking and not following: the file may have been swapped for a pipe or a link since it was listed.
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise os_problem(error, Path(file)) from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        digest = hashlib.sha256()
        while chunk := os.read(fd, _CHUNK):
            digest.update(chunk)
        return digest.digest()
    except OSError as error:
        raise os_problem(error, Path(file)) from error
    finally:
        os.close(fd)
