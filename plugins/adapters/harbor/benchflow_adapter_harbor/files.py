"""Reading a task's own files on the host: regular ones, inside the task folder, of sane size, in UTF-8."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from benchflow_core.errors import TaskError

MAX_BYTES = 16 * 1024 * 1024


def problem(file: Path, message: str, *, line: int | None = None, remedy: str = "", code: str = "") -> TaskError:
    """A `TaskError` that says where; `details` carries file, line and code for machines."""
    where = f"{file}:{line}" if line else str(file)
    details = {"file": str(file), "line": line, "code": code}
    return TaskError(f"{where}: {message}.", remedy=remedy or None, details=details)


def read_text(file: Path, root: Path) -> str:
    """The text of a file of the task. Never follows a link out of it, never blocks on a pipe."""
    inside(file, root)
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise problem(file, "does not exist", code="missing-file") from error
    except OSError as error:
        raise problem(file, f"cannot be read: {error.strerror}", code="unreadable") from error
    with os.fdopen(fd, "rb", closefd=True) as stream:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise problem(file, "is not a regular file", code="special-file")
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise problem(file, f"is larger than {MAX_BYTES >> 20} MiB", code="too-large")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}"
        raise problem(file, what, line=line, remedy="Save it as UTF-8.", code="not-utf8") from error


def inside(path: Path, root: Path) -> None:
    """Refuse a path that a link leads out of the task folder."""
    if _is_plain(path, root):
        return
    real, top = os.path.realpath(path), os.path.realpath(root)
    if real != top and not real.startswith(top.rstrip("/") + "/"):
        what = f"leads out of the task folder, to {real}"
        raise problem(path, what, remedy="Copy the file into the task.", code="link-outside")


def _is_plain(path: Path, root: Path) -> bool:
    """Below the root by name, and no link on the way: the common case, and much cheaper to see than to resolve."""
    if not path.is_relative_to(root) or ".." in path.parts:
        return False
    ways = path.relative_to(root)
    return not any((root / way).is_symlink() for way in (ways, *ways.parents[:-1]))


def existing_dir(path: Path, root: Path) -> Path | None:
    """The folder, if it is one and lies inside the task."""
    if not path.is_dir():
        return None
    inside(path, root)
    return path


def existing_file(path: Path, root: Path) -> Path | None:
    """The file, if it is one and lies inside the task."""
    if not path.is_file():
        return None
    inside(path, root)
    return path
