"""Results as commands read and show them: what rollouts say together, one job, and who reads them from disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

from benchflow_core.contracts.common import LoadedPlugin
from benchflow_core.contracts.exporters import JobResults, RolloutRecord
from benchflow_core.contracts.panels import Panel
from benchflow_core.quick import dataclass

__all__ = ["EvaluationResult", "OwnedPanel", "ResultsReader", "TaskScores"]

SUMMARY_VERSION = "1.0"


@dataclass
class TaskScores:
    """The rewards of a task's scored rollouts: numbers only, so that a large job stays small in memory."""

    name: str
    passes: list[float] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)


@dataclass
class EvaluationResult:
    """What a job, or any set of rollouts, says."""

    job_name: str
    total: int = 0
    """Planned rollouts."""
    passed: int = 0
    failed: int = 0
    errored: int = 0
    verifier_errored: int = 0
    elapsed_sec: float = 0.0
    failures: list[dict[str, Any]] = field(default_factory=list)
    error_categories: dict[str, int] = field(default_factory=dict)
    """`kind:code` of every error, those of scored rollouts included."""
    unscored_by_kind: dict[str, int] = field(default_factory=dict)
    """Why rollouts have no score, by type of error; `not-run` for those that left no result."""
    fidelity: dict[str, int] = field(default_factory=dict)
    isolation: dict[str, int] = field(default_factory=dict)
    contested: int = 0
    """Rollouts whose readings differ, unsettled by evidence or a person."""
    contested_scores: dict[str, float | None] = field(default_factory=dict)
    """The score under each choice about them."""
    strata: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Where image fidelity or isolation differ: the score of each kind for itself."""
    usage: dict[str, float] = field(default_factory=dict)
    tasks: dict[str, TaskScores] = field(default_factory=dict)
    mean_reward: float | None = None
    score_error: float | None = None
    """Standard error of `score`, clustered by task; none with fewer than two tasks."""
    score_interval: tuple[float, float] | None = None
    """95 %, Wilson's, for as many rollouts as the trials of the same tasks are worth."""
    reward_error: float | None = None
    statistics: Mapping[str, Any] = field(default_factory=dict)
    """What the installed commands that read results add: pass@k, flaky tasks."""
    arms: dict[str, EvaluationResult] = field(default_factory=dict)
    """Where several agents, models or arms were run: each by itself, in the order of the job. Their scores are the
    job's scores; there is no score, mean or error over all of them."""
    job_dir: Path | None = None

    @property
    def scored(self) -> int:
        return self.passed + self.failed

    @property
    def unscored(self) -> int:
        return self.total - self.scored

    @property
    def coverage(self) -> float:
        return self.scored / self.total if self.total else 0.0

    @property
    def score(self) -> float | None:
        """Passed among the scored; read it together with `coverage` and `bounds`. None with several `arms`."""
        if self.arms:
            return None
        return self.passed / self.scored if self.scored else 0.0

    @property
    def score_excl_errors(self) -> float | None:
        """The older name of `score`, from when errors counted as failures in it."""
        return self.score

    @property
    def lowest_score(self) -> float:
        """The score of the worst arm: what a threshold is compared with."""
        return min(part.score or 0.0 for part in (self.arms or {"": self}).values())

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The score if every unscored rollout had failed, and if every one had passed. None with several `arms`."""
        if self.arms:
            return None
        if not self.total:
            return 0.0, 0.0
        return self.passed / self.total, (self.passed + self.unscored) / self.total

    @property
    def text(self) -> str:
        """One line: score, interval, coverage, and the bounds where that is short. Of one arm."""
        if not self.scored:
            return f"no score: 0 of {self.total} rollouts could be scored"
        low, high = self.score_interval or (0.0, 1.0)
        text = f"{self.passed}/{self.scored} ({self.score:.1%}), 95 % interval {low:.1%} to {high:.1%}"
        text += f", coverage {self.scored}/{self.total}"
        if self.unscored and self.bounds:
            text += f" (all rollouts: between {self.bounds[0]:.1%} and {self.bounds[1]:.1%})"
        return text

    def to_json(self, more: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of `summary.json`."""
        return {
            "schema_version": SUMMARY_VERSION,
            "job_name": self.job_name,
            **self.usage,
            **more,
            **{name: getattr(self, name) for name in _COUNTS},
            "score": f"{self.score:.1%}" if self.scored and not self.arms else None,
            "score_ratio": self.score if self.scored else None,
            "score_bounds": self.bounds,
            "score_error": self.score_error,
            "score_interval": self.score_interval,
            "mean_reward": self.mean_reward,
            "mean_reward_error": self.reward_error,
            "tasks": len(self.tasks),
            **self.statistics,
            "error_categories": self.error_categories,
            "image_fidelity": self.fidelity,
            "verifier_isolation": self.isolation,
            "contested": self.contested,
            "contested_scores": self.contested_scores,
            "strata": {} if self.arms else self.strata,
            **({"arms": {name: arm.to_json({}) for name, arm in self.arms.items()}} if self.arms else {}),
            "elapsed_sec": round(self.elapsed_sec, 3),
        }


_COUNTS = [
    "total",
    "passed",
    "failed",
    "errored",
    "verifier_errored",
    "scored",
    "unscored",
    "unscored_by_kind",
    "coverage",
]


@dataclass(frozen=True, slots=True)
class OwnedPanel:
    """A panel, and the plugin that made it."""

    owner: str
    panel: Panel


class ResultsReader(Protocol):
    """What `CommandContext.results()` gives. Raises `ConfigurationError` for what is not there."""

    def find(self, given: str, jobs_dir: Path) -> Path:
        """A job or rollout by its path, by its name below `jobs_dir`, or `latest`."""

    def folders(self, root: Path) -> Iterator[Path]:
        """Every job below a folder, itself included; no rollout is read."""

    def rollouts(self, root: Path) -> list[Path]:
        """The folder of every finished rollout that counts below a folder, or the folder itself if it is one."""

    def job(self, folder: Path) -> JobResults:
        """One job, read through the index."""

    def rollout(self, folder: Path) -> RolloutRecord:
        """One rollout, finished or not: `result` is empty while it runs."""

    def live(self, folder: Path) -> Mapping[str, Any]:
        """What a running job does at this moment; empty where nothing runs."""

    def compare(
        self, jobs: Sequence[Path | str], metric: str = "pass", arms: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """Each of the others against the first, paired by task; of one job its arms, or only those named.

        `JOB:ARM` is one arm of a job.
        """

    def report(self, result: EvaluationResult) -> Iterator[str]:
        """The score in words, and what has to be known about it; with several arms that of each."""

    def health(self, folder: Path) -> Mapping[str, Any]:
        """Whether what a finished job planned was measured, and what was in the way. The score is not health."""

    def estimate(
        self, jobs_dir: Path, job_name: str, rollouts: int, agent: str, model: str | None
    ) -> Mapping[str, Any]:
        """The disk and the money that so many rollouts will take, judged by an earlier job."""

    def export(self, folder: Path, exporter: LoadedPlugin) -> None:
        """Write a rollout in the format of an exporter, with its default options, beside the rollout."""

    def panels(self, record: RolloutRecord | JobResults) -> list[OwnedPanel]:
        """What installed exporters and observers add to the page; one that fails adds a panel that says so."""

    def hide(self, data: bytes) -> bytes:
        """Without the secrets this host knows, what looks like a key, and the user's home folder."""

    def locked(self, path: Path) -> AbstractContextManager[None]:
        """Nobody else writes to the jobs below a folder, or to that of a rollout, meanwhile."""

    def refresh(self, path: Path) -> list[EvaluationResult]:
        """Write the summaries of these jobs as their rollouts are now."""
