"""Job and rollout configs from YAML. The same fields as in Python and on the command line; older words are aliases."""

from __future__ import annotations

import os
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from benchflow_core.configfile import ConfigFile
from benchflow_core.drive.scenes import Role, Scene, Turn
from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation.config import EvaluationConfig, RetryConfig
from benchflow_core.rollout.config import RolloutConfig

__all__ = ["JobFile", "load_job", "load_rollout"]

_ALIASES = {
    "environment": "sandbox",
    "task_dir": "tasks_dir",
    "task_path": "tasks_dir",
    "agent_idle_timeout_sec": "agent_idle_timeout",
    "include": "include_tasks",
    "exclude": "exclude_tasks",
}
_OWN = ("tasks_dir", "jobs_dir", "job_name", "rollout_name", "max_retries")
_NOT_IN_YAML = ("task_path", "retry", "attempt", "trial", "source_provenance", "dataset", "pre_agent_hooks", "verify")


class JobFile:
    """A read config: where the tasks are, where results go, and the settings."""

    def __init__(self, path: str | Path) -> None:
        self.file = ConfigFile(path)
        self.values = self._renamed()
        known = {f.name for f in (*fields(EvaluationConfig), *fields(RolloutConfig))} - set(_NOT_IN_YAML)
        self.file.refuse_unknown(self.values, [*known, *_OWN, *_ALIASES])
        self.tasks_dir = self._path("tasks_dir")
        self.jobs_dir = self._path("jobs_dir") or Path("jobs")
        self.job_name: str | None = self.values.pop("job_name", None)
        self.rollout_name: str | None = self.values.pop("rollout_name", None)
        self.max_retries: int | None = self.values.pop("max_retries", None)
        if "scenes" in self.values:
            self.values["scenes"] = _scenes(self.file, self.values["scenes"])
        if isinstance(self.values.get("prompts"), str):
            self.values["prompts"] = [self.values["prompts"]]
        if "agent_env" in self.values:
            self.values["agent_env"] = {k: os.path.expandvars(str(v)) for k, v in self.values["agent_env"].items()}

    def _renamed(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, value in self.file.data.items():
            name = _ALIASES.get(key, key)
            if name in values:
                raise ConfigurationError(f"{self.file.where(key)}: '{key}' and '{name}' mean the same; give one.")
            self.file.lines.setdefault((name,), self.file.lines.get((key,), 1))
            values[name] = value
        return values

    def _path(self, name: str) -> Path | None:
        """Relative to where the command runs, as on the command line."""
        value = self.values.pop(name, None)
        return Path(self.file.typed(value, str, name)).expanduser() if value is not None else None

    def settings(self, kind: type) -> dict[str, Any]:
        """The values as fields of a config class; a field that class lacks is refused, not dropped."""
        known = {f.name: f for f in fields(kind)}
        for key, value in self.values.items():
            if key not in known:
                what = "rollout" if kind is RolloutConfig else "job"
                raise ConfigurationError(f"{self.file.where(key)}: '{key}' does not belong into a {what} config.")
            _check_type(self.file, key, value, known[key])
        return dict(self.values)


def _check_type(file: ConfigFile, key: str, value: Any, field: Any) -> None:
    """By the default's type: text where it is none or text, else what the default is."""
    default = (
        field.default
        if field.default is not MISSING
        else field.default_factory()
        if field.default_factory is not MISSING
        else None
    )
    if value is None or key == "scenes":
        return
    if isinstance(default, bool):
        file.typed(value, bool, key)
    elif isinstance(default, int | float) or key in ("timeout", "build_concurrency"):
        file.typed(value, (int, float), key)
    elif isinstance(default, dict):
        file.typed(value, dict, key)
    elif isinstance(default, tuple) or key == "prompts":
        file.typed(value, list, key)
    else:
        file.typed(value, str, key)


def _scenes(file: ConfigFile, value: Any) -> list[Scene]:
    return [_scene(file, scene, ("scenes", i)) for i, scene in enumerate(file.typed(value, list, "scenes"))]


def _scene(file: ConfigFile, value: Any, at: tuple[Any, ...]) -> Scene:
    file.typed(value, dict, *at)
    file.refuse_unknown(value, ("name", "roles", "turns"), *at)
    roles = [_entry(file, Role, role, (*at, "roles", i)) for i, role in enumerate(value.get("roles") or ())]
    turns = [_entry(file, Turn, turn, (*at, "turns", i)) for i, turn in enumerate(value.get("turns") or ())]
    return Scene(value.get("name", "default"), roles, turns)


def _entry(file: ConfigFile, kind: Any, value: Any, at: tuple[Any, ...]) -> Any:
    file.typed(value, dict, *at)
    file.refuse_unknown(value, [f.name for f in fields(kind)], *at)
    required = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
    for name in required:
        if name not in value:
            raise ConfigurationError(f"{file.where(*at)}: a {kind.__name__.lower()} needs '{name}'.")
        file.typed(value[name], str, *at, name)
    return kind(**value)


def load_job(path: str | Path) -> tuple[JobFile, EvaluationConfig]:
    file = JobFile(path)
    retry = RetryConfig() if file.max_retries is None else RetryConfig(max_retries=file.max_retries)
    return file, EvaluationConfig(retry=retry, **file.settings(EvaluationConfig))


def load_rollout(path: str | Path) -> RolloutConfig:
    """One rollout: `concurrency` and the like mean nothing here and are left aside as the older documents do."""
    file = JobFile(path)
    if file.tasks_dir is None:
        raise ConfigurationError(f"{file.file.path}: 'task_dir' is missing.")
    for name in ("concurrency", "build_concurrency", "trials"):
        file.values.pop(name, None)
    return RolloutConfig(
        task_path=file.tasks_dir,
        jobs_dir=file.jobs_dir,
        job_name=file.job_name,
        rollout_name=file.rollout_name,
        **file.settings(RolloutConfig),
    )
