"""Finding and loading tasks, whatever their format: every installed adapter is asked, in order of rank."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from benchflow_core.contracts.adapters import AdapterSpec
from benchflow_core.contracts.tasks import Task
from benchflow_core.errors import PluginError, PluginFailed, TaskError
from benchflow_core.plugins import Loaded, registry
from benchflow_core.plugins.guard import wrong_type
from benchflow_core.task.files import os_problem, task_files

__all__ = ["adapter_of", "find_tasks", "load_task"]

_COLLECTION = "tasks"


def load_task(path: Path) -> Task:
    """The task in a folder. Raises `TaskError` naming file and line."""
    adapter = adapter_of(path)
    spec: AdapterSpec = adapter.spec
    try:
        task = spec.load(path)
    except OSError as error:
        raise os_problem(error, path) from error
    except PluginFailed as error:
        error.message = f"{path}: {error.message}"
        raise
    if not isinstance(task, Task):
        raise wrong_type(adapter.who, "load", task, Task)
    _refuse_unsafe_inputs(task)
    return task


def adapter_of(path: Path) -> Loaded:
    """The adapter for the format of a task folder."""
    _require_folder(path)
    adapters = _adapters()
    for adapter in adapters:
        if _detects(adapter, path):
            return adapter
    inside = len(_children(path, adapters))
    raise TaskError(
        f"{path} is not a task: it has none of {_signatures(adapters)}.",
        remedy=f"It holds {inside} task folders: name one of them." if inside else "Run: bench tasks init NAME",
        details={"file": str(path), "code": "not-a-task"},
    )


def find_tasks(path: Path) -> list[Path]:
    """The folder itself if it is a task, else the task folders right below it (or its `tasks/`), sorted."""
    _require_folder(path)
    adapters = _adapters()
    if any(_detects(adapter, path) for adapter in adapters):
        return [path]
    found = _children(path, adapters)
    nested = path / _COLLECTION
    if not found and nested.is_dir():
        found = _children(nested, adapters)
    if not found:
        raise TaskError(
            f"{path} is not a task and holds none: no {_signatures(adapters)} there or one folder below.",
            remedy=registry().kept_out("adapter") or "Run: bench tasks init NAME",
            details={"file": str(path), "code": "no-tasks"},
        )
    return found


def _adapters() -> list[Loaded]:
    found = registry().all("adapter")
    if not found:
        remedy = registry().kept_out("adapter") or "Try: pip install benchflow"
        raise PluginError("there is no task format to read it with.", remedy=remedy)
    return sorted(found, key=lambda adapter: (adapter.spec.rank, adapter.name))


def _detects(adapter: Loaded, path: Path) -> bool:
    try:
        return bool(adapter.spec.detect(path))
    except OSError as error:
        raise os_problem(error, path) from error
    except PluginFailed as error:  # the folder may well be of another format
        registry().warn(error)
        return False


def _children(path: Path, adapters: list[Loaded]) -> list[Path]:
    try:
        with os.scandir(path) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir())
    except OSError as error:
        raise os_problem(error, path) from error
    return [path / name for name in names if any(_detects(adapter, path / name) for adapter in adapters)]


def _signatures(adapters: list[Loaded]) -> str:
    return ", ".join(f"{adapter.spec.signature} ({adapter.name})" for adapter in adapters)


def _require_folder(path: Path) -> None:
    details = {"file": str(path), "code": "missing-folder"}
    try:
        if path.is_dir():
            return
        exists = path.exists()
    except OSError as error:
        raise os_problem(error, path) from error
    if exists:
        raise TaskError(f"{path} is a file, not a task folder.", remedy="Name the folder it is in.", details=details)
    raise TaskError(f"task folder {path} does not exist.", details=details)


def _refuse_unsafe_inputs(task: Task) -> None:
    """Whatever the adapter says is copied into a box must lie in the task folder, links and all."""
    for folder in dict.fromkeys(_inputs(task)):
        for _ in task_files(folder, task.path):
            pass


def _inputs(task: Task) -> Iterator[Path]:
    yield from task.verifier.tests
    if task.solution:
        yield task.solution.dir
    for step in task.steps:
        yield from step.verifier.tests
        if step.solution:
            yield step.solution.dir
        if step.workdir_files:
            yield step.workdir_files
