"""The files of a task, listed so that nothing outside its folder can be reached by copying them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from benchflow_core.errors import BenchflowError, TaskError
from benchflow_core.quick import dataclass
from benchflow_core.results.files import host_exhausted

__all__ = ["TaskFile", "os_problem", "task_files"]


@dataclass(frozen=True, slots=True)
class TaskFile:
    """One regular file below a listed folder."""

    path: Path
    relative: str
    """POSIX, below the listed folder; through a folder link where one leads there."""
    size: int
    mode: int


def task_files(folder: Path, root: Path) -> Iterator[TaskFile]:
    """Every regular file below `folder`, sorted by name in each folder, links followed as long as they stay in `root`.

    Raises `TaskError` for a link that leaves the task folder, a cycle of links, a pipe, socket or device, and for
    what cannot be read. A link to nothing inside the task is left out.
    """
    real_root = os.path.realpath(root)
    top = os.path.realpath(folder)
    _refuse_outside(folder, top, real_root)
    yield from _walk(folder, "", real_root, (top,), {top})


def _walk(folder: Path, prefix: str, root: str, ancestors: tuple[str, ...], seen: set[str]) -> Iterator[TaskFile]:
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise os_problem(error, folder) from error
    for entry in entries:
        path, relative = folder / entry.name, prefix + entry.name
        target = f"{ancestors[-1]}/{entry.name}"
        if entry.is_symlink():
            target = os.path.realpath(target)
            _refuse_outside(path, target, root)
        info = _stat(path)
        if info is None:
            continue
        if stat.S_ISREG(info.st_mode):
            yield TaskFile(path, relative, info.st_size, info.st_mode)
        elif not stat.S_ISDIR(info.st_mode):
            raise _error(path, "is neither a file nor a folder", "special-file", "A task holds only files and folders.")
        elif target in ancestors:
            raise _error(path, "links back to a folder that holds it", "link-cycle", "Remove the link.")
        elif target not in seen:
            seen.add(target)
            yield from _walk(path, f"{relative}/", root, (*ancestors, target), seen)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise os_problem(error, path) from error


def _refuse_outside(path: Path, target: str, root: str) -> None:
    if target != root and not target.startswith(root.rstrip("/") + "/"):
        raise _error(path, f"leads out of the task folder, to {target}", "link-outside", "Copy the file into the task.")


def os_problem(error: OSError, path: Path) -> BenchflowError:
    """What went wrong with a task's file, as what it is."""
    name = Path(os.fsdecode(error.filename)) if error.filename else path
    if (ours := host_exhausted(error, f"{name} cannot be read")) is not None:
        return ours
    if isinstance(error, FileNotFoundError):
        return _error(name, "is gone: the task folder changed while it was read", "vanished", "")
    if isinstance(error, PermissionError):
        return _error(name, "may not be read by this user", "unreadable", "Change its permissions.")
    if error.errno == errno.ELOOP:
        return _error(name, "is a link that leads nowhere", "link-cycle", "Remove the link.")
    return _error(name, f"cannot be read: {error.strerror or error}", "unreadable", "")


def _error(path: Path, what: str, code: str, remedy: str) -> TaskError:
    return TaskError(f"{path}: {what}.", remedy=remedy or None, details={"file": str(path), "code": code})
