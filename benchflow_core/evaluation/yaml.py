"""A job as a file and a command line describe it, on its way to an `Evaluation`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchflow_core.dotenv import user_env
from benchflow_core.evaluation.tasks import ChosenTasks, choose_tasks
from benchflow_core.quick import dataclass
from benchflow_core.results.layout import refuse_outside
from benchflow_core.settings.job_file import read_settings
from benchflow_core.settings.models import JobKeys, JobSettings

if TYPE_CHECKING:
    from benchflow_core.evaluation.job import Evaluation

__all__ = ["JobSpec", "load_job", "open_job", "read_job"]


@dataclass(frozen=True)
class JobSpec:
    """Everything that makes a job, checked for form; nothing is fetched yet."""

    choice: JobKeys
    config: JobSettings

    @property
    def jobs_dir(self) -> Path:
        return self.choice.jobs_dir

    @property
    def job_name(self) -> str | None:
        return self.choice.job_name

    @property
    def rollout_name(self) -> str | None:
        return self.choice.rollout_name

    def tasks(self, env: Mapping[str, str] | None = None) -> ChosenTasks:
        """Find or fetch the tasks. Blocking."""
        given = user_env() if env is None else env
        return choose_tasks(self.choice, self.config.include_tasks, self.config.exclude_tasks, given)


def load_job(path: str | Path) -> JobSpec:
    """Return the job that a file describes."""
    return read_job(path)


def read_job(
    path: str | Path | None = None, *, overrides: Sequence[str] = (), given: Mapping[str, Any] | None = None
) -> JobSpec:
    """Read the file, `--config-override` over it, and the options of a command line over both."""
    choice, config = read_settings(path, overrides, given or {})
    for name, what in ((choice.job_name, "job name"), (choice.rollout_name, "rollout name")):
        if name is not None:
            refuse_outside(name, what)
    return JobSpec(choice, config)


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
