"""Whose a path is: the image's, the task's own, or the agent's; and what the task declares in `keep_changes`."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import basename as name_of
from posixpath import dirname as parent_of
from typing import Final

from benchflow_core.contracts import Change, DownloadLimits, IsolationRequest, Sandbox, private_folder
from benchflow_core.errors import InfrastructureError, SandboxLost

__all__ = ["SYSTEM", "Places", "ancestors", "name_of", "parent_of", "places_of", "read_file", "task_files", "under"]

SYSTEM: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/opt", "/nix")
"""Where images keep programs and libraries."""
_GIVEN_BYTES: Final = 1024 * 1024


def under(path: str, folder: str) -> bool:
    """Tell whether a path is the folder itself or lies below it."""
    return path == folder or path.startswith(folder if folder.endswith("/") else folder + "/")


def ancestors(path: str) -> list[str]:
    """Every folder above a path, nearest first, the root included."""
    found = []
    while path != "/":
        path = parent_of(path)
        found.append(path)
    return found


@dataclass(frozen=True, slots=True)
class Places:
    """What has to be known about a task and its verifier to judge a path."""

    workdir: str
    home: str
    """Of the user the verifier runs as."""
    path: tuple[str, ...]
    """The verifier's PATH."""
    tests: str
    logs: str
    test_names: frozenset[str] = frozenset()
    """Names of files that the task's tests bring. Their contents are not looked at."""
    keep: tuple[str, ...] = ()
    """`keep_changes` of the task."""
    given: Mapping[str, Path] = field(default_factory=dict)
    """Files that the task itself laid into the box, with their source on the host."""

    def in_work(self, path: str) -> bool:
        """Tell whether a path lies in the working directory, where everything is the agent's to change."""
        return not any(under(prefix, self.workdir) for prefix in SYSTEM) and under(path, self.workdir)

    def declared(self, path: str) -> bool:
        """Tell whether the task says that the agent is meant to change it."""
        globs = (glob.rstrip("/") for glob in self.keep)
        return any(fnmatch.fnmatchcase(path, glob) or fnmatch.fnmatchcase(path, f"{glob}/*") for glob in globs)


def places_of(request: IsolationRequest) -> Places:
    settings, task, step = request.settings, request.task, request.step
    workdir = request.workdir.rstrip("/") or "/"
    folders = [task.environment.context] if task.environment.upload_context else []
    folders += [s.workdir_files for s in task.steps[: task.steps.index(step) + 1]] if step in task.steps else []
    return Places(
        workdir=workdir,
        home=request.home,
        path=request.path,
        tests=settings.tests_target.rstrip("/"),
        logs=settings.logs_target.rstrip("/"),
        test_names=frozenset(file.name for folder in settings.tests for file in _files(folder)),
        keep=settings.keep_changes,
        given={
            f"{workdir.rstrip('/')}/{file.relative_to(folder).as_posix()}": file
            for folder in folders
            if folder
            for file in _files(folder)
        },
    )


def _files(folder: Path) -> list[Path]:
    return [path for path in (folder.rglob("*") if folder.is_dir() else [folder]) if path.is_file()]


async def task_files(request: IsolationRequest, changes: Sequence[Change], places: Places) -> frozenset[str]:
    """Return the paths that hold what the task laid there, unchanged: they are not the agent's."""
    same = set()
    for change in changes:
        source = places.given.get(change.path)
        if source is None or change.size != source.stat().st_size or change.size > _GIVEN_BYTES:
            continue
        if await read_file(request.sandbox, change.path) == source.read_bytes():
            same.add(change.path)
    return frozenset(same)


async def read_file(box: Sandbox, path: str) -> bytes | None:
    """Return a regular file's content. What a box says is untrusted: limits apply, and nothing is followed."""
    limits = DownloadLimits(max_bytes=_GIVEN_BYTES, max_entries=1, max_depth=1)
    with private_folder() as folder:
        target = folder / "file"
        try:
            await box.download(path, target, limits=limits)
        except SandboxLost:
            raise
        except (FileNotFoundError, NotADirectoryError, InfrastructureError):
            return None
        return target.read_bytes() if target.is_file() and not target.is_symlink() else None
