"""Jobs from YAML and from the command line: one way in, and the same words in both."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchflow_core.configfile import ConfigFile
from benchflow_core.dotenv import user_env
from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation.config import EvaluationConfig, RetryConfig
from benchflow_core.evaluation.matrix import Matrix
from benchflow_core.evaluation.model import ALIASES, LISTS, TEXT_TABLES, JobKeys, check_settings
from benchflow_core.evaluation.overrides import apply_options, apply_overrides
from benchflow_core.evaluation.tasks import ChosenTasks, Source, TaskChoice, choose_tasks
from benchflow_core.plugins import registry
from benchflow_core.quick import dataclass
from benchflow_core.results.layout import refuse_outside
from benchflow_core.rollout.driver_word import driver_word
from benchflow_core.world.choice import StateChoice, read_state

if TYPE_CHECKING:
    from benchflow_core.evaluation.job import Evaluation

__all__ = ["JobSpec", "load_job", "open_job", "read_job"]

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}|\$([A-Za-z_]\w*)")


@dataclass(frozen=True)
class JobSpec:
    """Everything that makes a job, checked for form; nothing is fetched yet."""

    choice: TaskChoice
    config: EvaluationConfig
    jobs_dir: Path = Path("jobs")
    job_name: str | None = None
    rollout_name: str | None = None

    def tasks(self, env: Mapping[str, str] | None = None) -> ChosenTasks:
        """Find or fetch the tasks. Blocking."""
        given = user_env() if env is None else env
        return choose_tasks(self.choice, self.config.include_tasks, self.config.exclude_tasks, given)


def load_job(path: str | Path) -> JobSpec:
    """A job as a file describes it."""
    return read_job(path)


def read_job(
    path: str | Path | None = None, *, overrides: Sequence[str] = (), given: Mapping[str, Any] | None = None
) -> JobSpec:
    """The file, `--config-override` over it, and the options of a command line over both."""
    file = ConfigFile(path)
    values = _renamed(file)
    _rewrite_foreign(values, file)
    apply_overrides(values, overrides, file)
    _expand(values, file)
    apply_options(values, given or {}, file)
    _shape(values, file)
    # Options alone were checked where they were typed: a plain command line does not pay for a schema library.
    checked = check_settings(values, file) if path is not None or overrides else _own(values)
    return _spec(checked, file)


def open_job(
    spec: JobSpec,
    kind: type[Evaluation],
    warn: Callable[[str], None] | None = None,
    chosen: ChosenTasks | None = None,
    **more: Any,
) -> Evaluation:
    """Make the job: its tasks are found and verified here unless they are given."""
    chosen = chosen or spec.tasks(more.get("env"))
    for line in chosen.warnings:
        (warn or (lambda line: None))(line)
    config = chosen.stamp(spec.config)
    return kind(list(chosen.paths), spec.jobs_dir, config, spec.job_name, warn=warn, **more)


# --- from values to classes ---------------------------------------------------------------------------------


def _renamed(file: ConfigFile) -> dict[str, Any]:
    values: dict[str, Any] = {}
    words: dict[str, str] = {}
    for key, value in file.data.items():
        name = ALIASES.get(key, key)
        if name in values:
            raise ConfigurationError(f"{file.where(key)}: '{words[name]}' and '{key}' mean the same; give one.")
        words[name] = key
        if name != key:
            file.renamed(key, name)
        values[name] = value
    return values


def _rewrite_foreign(values: dict[str, Any], file: ConfigFile) -> None:
    """Let the adapters rewrite a file that has another program's shape."""
    known = {f.name for kind in (EvaluationConfig, JobKeys) for f in fields(kind)}
    if values.keys() <= known and not isinstance(values.get("sandbox"), dict):
        return
    for adapter in registry().all("adapter"):
        if adapter.spec.rewrite_job is not None:
            adapter.spec.rewrite_job(values, file)


def _expand(values: dict[str, Any], file: ConfigFile) -> None:
    """`$NAME`, `${NAME}` and `${NAME:-default}` among the variables that a file gives to agents."""
    table = values.get("agent_env")
    if not isinstance(table, dict) or not any("$" in str(value) for value in table.values()):
        return
    host = user_env()
    for key, value in table.items():

        def found(match: re.Match[str], key: str = key) -> str:
            name, default = match[1] or match[3], match[2]
            if name not in host and default is None:
                raise ConfigurationError(
                    f"{file.where('agent_env', key)}: the variable '{name}' is not set.", remedy=f"export {name}=…"
                )
            return host.get(name, default or "")

        if isinstance(value, str):
            table[key] = _VARIABLE.sub(found, value)


def _shape(values: dict[str, Any], file: ConfigFile) -> None:
    """Shorter ways to write a thing, written out."""
    for name in LISTS:
        if isinstance(values.get(name), str):
            values[name] = [values[name]]
    for name in TEXT_TABLES:
        if isinstance(values.get(name), dict):
            values[name] = {str(key): _text(value) for key, value in values[name].items()}
    if isinstance(values.get("source"), str):
        values["source"] = {"repo": values["source"]}
    if isinstance(values.get("state"), str):
        values["state"] = read_state(values["state"])
    if values.get("agent_idle_timeout") in (0, "none", "0"):
        values["agent_idle_timeout"] = None
    if isinstance(usage := values.get("usage_tracking"), dict):
        file.refuse_unknown(usage, ("mode",), "usage_tracking")
        values["usage_tracking"] = usage.get("mode", "auto")
    loop = values.get("loop_strategy")
    if isinstance(loop, dict):
        file.refuse_unknown(loop, ("strategy", "params"), "loop_strategy")
        values["driver"], values["driver_params"] = loop.get("strategy"), loop.get("params") or {}
        del values["loop_strategy"]


def _text(value: Any) -> Any:
    """A variable is text; YAML reads `false` and `3` as something else."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float | str) else value


def _own(values: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(values)
    if "source" in made:
        if "repo" not in made["source"]:
            raise ConfigurationError("--source-path and --source-ref say nothing without --source-repo.")
        made["source"] = Source(**made["source"])
    if "state" in made:
        made["state"] = StateChoice(**made["state"])
    if "matrix" in made:
        made["matrix"] = Matrix(**made["matrix"])
    return made


def _spec(values: dict[str, Any], file: ConfigFile) -> JobSpec:
    keys = {f.name: values.pop(f.name) for f in fields(JobKeys) if f.name in values}
    own = JobKeys(**keys)
    if own.max_retries is not None:
        if "retry" in values:
            raise ConfigurationError(f"{file.where('max_retries')}: 'max_retries' and 'retry' both say how often.")
        values["retry"] = RetryConfig(max_retries=own.max_retries)
    if own.loop_strategy is not None:
        values["driver"], values["driver_params"] = _driver(own.loop_strategy, file)
    choice = TaskChoice(
        Path(own.tasks_dir).expanduser() if own.tasks_dir else None,
        own.source,
        own.dataset,
        own.registry,
        own.ignore_bench_version,
    )
    config = EvaluationConfig(**values)
    for name, what in ((own.job_name, "job name"), (own.rollout_name, "rollout name")):
        if name is not None:
            refuse_outside(name, what)
    return JobSpec(choice, config, Path(own.jobs_dir).expanduser(), own.job_name, own.rollout_name)


def _driver(word: str, file: ConfigFile) -> tuple[str, dict[str, str]]:
    try:
        return driver_word(word)
    except ConfigurationError as error:
        raise ConfigurationError(f"{file.where('loop_strategy')}: {error.message}") from None
