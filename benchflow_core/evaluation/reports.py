"""Files that `bench eval create` writes for other programs before it starts: which tasks, and which settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from benchflow_core.errors import BenchflowError, ConfigurationError
from benchflow_core.evaluation.config import EvaluationConfig
from benchflow_core.evaluation.tasks import ChosenTasks
from benchflow_core.evaluation.yaml import JobSpec
from benchflow_core.results.clock import now
from benchflow_core.results.files import write_json
from benchflow_core.results.redact import secret_names
from benchflow_core.rollout.codec import code_in, to_json
from benchflow_core.task import load_task, task_digest

__all__ = ["check_writable", "write_run_config", "write_task_manifest"]

VERSION = "1.0"
_FILLED_IN = ("source_provenance", "dataset", "arm")


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
        "source": to_json(chosen.provenance),
        "dataset": to_json(chosen.dataset),
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
    choice = spec.choice
    tasks = {
        "tasks_dir": str(choice.tasks_dir.absolute()) if choice.tasks_dir else None,
        "source": to_json(choice.source),
        "dataset": choice.dataset,
        "registry": choice.registry,
        "ignore_bench_version": choice.ignore_bench_version or None,
        "jobs_dir": str(spec.jobs_dir),
    }
    value = {key: item for key, item in {**tasks, **_settings(spec.config)}.items() if item is not None}
    write_json(path, value)


def _settings(config: EvaluationConfig) -> dict[str, Any]:
    """What is not as by default."""
    written, code = to_json(config), code_in(config)
    found = {}
    for f in fields(config):
        start = f.default_factory() if f.default_factory is not MISSING else f.default
        if f.name in written and f.name not in (*_FILLED_IN, *code) and getattr(config, f.name) != start:
            found[f.name] = written[f.name]
    if "agent_env" in found:
        hidden = set(secret_names(config.agent_env))
        found["agent_env"] = {k: f"${{{k}}}" if k in hidden else v for k, v in config.agent_env.items()}
    return found
