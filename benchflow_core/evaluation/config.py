"""What a job is asked to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

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

    concurrency: int = 4
    build_concurrency: int | None = None
    trials: int = 1
    retry: RetryConfig = field(default_factory=RetryConfig)
    include_tasks: Sequence[str] = ()
    exclude_tasks: Sequence[str] = ()
    skip_unsupported: bool = False
    """Count tasks the sandbox cannot run as unscored instead of refusing the job."""

    def rollout(
        self, task_path: Path, *, jobs_dir: Path, job_name: str, rollout_name: str, trial: int, attempt: int
    ) -> RolloutConfig:
        """One rollout with these settings."""
        shared = {f.name: getattr(self, f.name) for f in fields(RolloutSettings)}
        return RolloutConfig(
            task_path=task_path,
            jobs_dir=jobs_dir,
            job_name=job_name,
            rollout_name=rollout_name,
            trial=trial,
            attempt=attempt,
            **shared,
        )
