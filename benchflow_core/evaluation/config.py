"""What a job is asked to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from benchflow_core.errors import ConfigurationError, error_names
from benchflow_core.evaluation.matrix import Arm, Matrix, make_arms
from benchflow_core.quick import dataclass
from benchflow_core.rollout.config import RolloutConfig, RolloutSettings

__all__ = ["EvaluationConfig", "RetryConfig"]


@dataclass(frozen=True)
class RetryConfig:
    """Retry follows the type of an error, never the reward."""

    max_retries: int = 2
    wait_multiplier: float = 2.0
    min_wait_sec: float = 1.0
    max_wait_sec: float = 30.0
    only: Sequence[str] = ()
    """Types (`infrastructure`, `provider` …) or codes (`sandbox_lost` …) of errors to try again. None: all worth it."""
    exclude: Sequence[str] = ()
    """Types or codes never to try again."""

    def __post_init__(self) -> None:
        known = error_names()
        for name in {
            *self.only,
            *self.exclude,
        } - known:  # plugins have codes of their own; a slip is close to one of ours
            if close := get_close_matches(name, known, 1, 0.8):
                raise ConfigurationError(f"retry: no error is called '{name}', did you mean '{close[0]}'?")

    def covers(self, result: Mapping[str, Any]) -> bool:
        """Is what ended so worth another attempt? By the type of its error, never by its reward."""
        info = result.get("error_info") or {}
        if result.get("rewards") is not None or not info.get("retryable"):
            return False
        names = {info["kind"], info["code"]}
        return names.isdisjoint(self.exclude) and (not self.only or not names.isdisjoint(self.only))

    def wait(self, attempt: int) -> float:
        """Seconds before the attempt after number `attempt`."""
        return min(self.max_wait_sec, self.min_wait_sec * self.wait_multiplier ** (attempt - 1))


@dataclass(kw_only=True)
class EvaluationConfig(RolloutSettings):
    """The settings of every rollout of a job, and those of the job itself."""

    concurrency: int | None = None
    """Rollouts at a time. None: as many as their declared CPUs and memory fit on the host."""
    build_concurrency: int | None = None
    trials: int = 1
    retry: RetryConfig = field(default_factory=RetryConfig)
    include_tasks: Sequence[str] = ()
    exclude_tasks: Sequence[str] = ()
    skip_unsupported: bool = False
    """Count tasks the sandbox cannot run as unscored instead of refusing the job."""
    expected_tasks: int | None = None
    """Refuse to run another number of tasks than this."""
    matrix: Matrix | None = None
    """Run every combination of agents, models and skill modes, each an arm of the job."""
    job_mode: Literal["parallel-independent", "sequential-shared"] = "parallel-independent"
    """`sequential-shared`: one rollout after the other, over one store of memory and skills that they learn from."""
    seed: int = 0
    """The order of rollouts is drawn from it."""
    max_cost: float | None = None
    """USD for the whole job: then nothing new starts."""
    max_tokens: int | None = None
    max_time: float | None = None
    """Seconds of the whole run."""
    executor: str | None = None
    """Where rollouts run; none: in the process of the job."""
    executor_options: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    """Rollouts at a time that share something: `sandbox:NAME`, `provider:NAME` or `agent:NAME`."""

    def arms(self) -> list[Arm]:
        """The cells of the matrix, or none."""
        return make_arms(self.matrix) if self.matrix else []

    def dataset_stamp(self) -> dict[str, str]:
        """As every file of a job names the dataset its tasks came from; nothing for other tasks."""
        return {f"dataset_{key}": self.dataset[key] for key in ("name", "version")} if self.dataset else {}

    def rollout(
        self,
        task_path: Path,
        *,
        jobs_dir: Path,
        job_name: str,
        rollout_name: str,
        trial: int,
        attempt: int,
        arm: str | None = None,
    ) -> RolloutConfig:
        """One rollout with these settings, or with those of an arm."""
        shared = {f.name: getattr(self, f.name) for f in fields(RolloutSettings)}
        if self.job_mode == "sequential-shared":
            shared["skills_dir"] = None  # what the store begins with; rollouts get it from there
        if arm is not None:
            shared |= {name: _merged(shared[name], value) for name, value in self._arm(arm).settings.items()}
            shared["arm"] = arm
            if shared["skill_mode"] == "no-skill" and self.matrix and self.matrix.skill_modes:
                shared["skills_dir"] = None  # it is there for the arms with skills
        return RolloutConfig(
            task_path=task_path,
            jobs_dir=jobs_dir,
            job_name=job_name,
            rollout_name=rollout_name,
            trial=trial,
            attempt=attempt,
            **shared,
        )

    def _arm(self, name: str) -> Arm:
        found = [arm for arm in self.arms() if arm.name == name]
        if not found:
            raise ConfigurationError(f"the job has no arm '{name}'.")
        return found[0]


def _merged(shared: Any, own: Any) -> Any:
    return {**shared, **own} if isinstance(own, Mapping) else own
