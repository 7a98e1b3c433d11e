"""Files that `bench eval create` writes for other programs before it starts: which tasks, and which settings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchflow_core.contracts.settings import Internal
from benchflow_core.errors import BenchflowError, ConfigurationError
from benchflow_core.evaluation.tasks import ChosenTasks
from benchflow_core.evaluation.yaml import JobSpec
from benchflow_core.results.clock import now
from benchflow_core.results.files import write_json
from benchflow_core.settings.compose import marked
from benchflow_core.settings.written import dump
from benchflow_core.task import load_task, task_digest

__all__ = ["check_writable", "write_run_config", "write_task_manifest"]

VERSION = "1.0"


def check_writable(paths: Iterable[Path | None]) -> None:
    """Refused now, not after a long run."""
    for path in paths:
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("ab"):
                    pass
            except OSError as error:
                raise ConfigurationError(f"cannot write {path}: {error.strerror or error}.") from error
            if path.stat().st_size == 0:
                path.unlink()


def write_task_manifest(path: Path, chosen: ChosenTasks) -> None:
    """The tasks that were chosen, each with its digest."""
    value = {
        "schema_version": VERSION,
        "written_at": now(),
        "where": chosen.where,
        "source": chosen.provenance,
        "dataset": chosen.dataset,
        "count": len(chosen.paths),
        "tasks": [_task(task) for task in chosen.paths],
    }
    write_json(path, value)


def _task(path: Path) -> dict[str, Any]:
    row: dict[str, Any] = {"name": path.name, "path": str(path.absolute()), "digest": None, "error": None}
    try:
        return {**row, "digest": task_digest(load_task(path).path)}
    except BenchflowError as error:
        return {**row, "error": error.message}


def write_run_config(path: Path, spec: JobSpec) -> None:
    """The settings in force, as a job file that `--config` takes. Secrets are named, and read from the environment."""
    internal = set(marked(type(spec.config), Internal))
    shown = {"secret": lambda name, value: f"${{{name}}}"}
    settings = spec.config.model_dump(mode="json", exclude=internal, exclude_defaults=True, context=shown)
    folder = spec.choice.tasks_dir and spec.choice.tasks_dir.absolute()
    chosen = dump(spec.choice.model_copy(update={"tasks_dir": folder}))
    names = ("tasks_dir", "source", "dataset", "registry", "ignore_bench_version", "jobs_dir")
    write_json(path, {**{name: chosen[name] for name in names if chosen[name]}, **settings})
