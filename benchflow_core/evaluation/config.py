"""What a job is asked to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation.matrix import Arm, Matrix, make_arms
from benchflow_core.rollout.config import RolloutConfig, RolloutSettings

__all__ = ["EvaluationConfig", "RetryConfig"]


@dataclass(frozen=True)
class RetryConfig:
    """Retry follows the type of an error, never the reward."""

    max_retries: int = 2
    wait_multiplier: float = 2.0
    min_wait_sec: float = 1.0
    max_wait_sec: float = 30.0

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
    seed: int = 0
    """The order of rollouts is drawn from it."""
    max_cost: float | None = None
    """USD for the whole job: then nothing new starts."""
    max_tokens: int | None = None
    max_time: float | None = None
    """Seconds of the whole run."""
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
        if arm is not None:
            shared |= {name: _merged(shared[name], value) for name, value in self._arm(arm).settings.items()}
            shared["arm"] = arm
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
