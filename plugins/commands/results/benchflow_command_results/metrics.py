"""Aggregate finished jobs: read from the plain files, through an index that only saves time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchflow_command_results.index import Row
from benchflow_command_results.jobs import seconds_of, stored_jobs
from benchflow_command_results.statistics import bootstrap_interval
from benchflow_core.contracts import EvaluationResult
from benchflow_core.contracts.core import ResultFiles
from benchflow_core.contracts.outcomes import Choice, counted

__all__ = ["BenchmarkMetrics", "collect_metrics", "counted_rows"]


@dataclass(frozen=True)
class BenchmarkMetrics:
    """What a folder of results says."""

    benchmark: str
    result: EvaluationResult
    jobs: Sequence[str] = ()
    bootstrap: dict[str, Any] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        return self.result.to_json({"benchmark": self.benchmark, "jobs": list(self.jobs), **self.bootstrap})


def collect_metrics(
    files: ResultFiles,
    root: Path,
    benchmark: str = "",
    *,
    wanted: Mapping[str, str] | None = None,
    contested: Choice | None = None,
    bootstrap: int = 0,
    seed: int = 0,
) -> BenchmarkMetrics:
    """Count every finished rollout below a folder, or those whose `agent`, `model` or `arm` is as `wanted`.

    `bootstrap`: also an interval from so many resamples of the tasks, drawn from `seed`.
    """
    only = {key: value for key, value in (wanted or {}).items() if value}
    chosen: list[Row] = []
    jobs, planned = [], 0
    arms: Counter[str] = Counter()
    for job in stored_jobs(files, root):
        rows = [row for row in job.rows if all(value in _named(row, key) for key, value in only.items())]
        jobs.append(job.name)
        planned += len(rows) if only else job.planned
        arms.update({} if only else job.arms)
        chosen += counted_rows(rows, contested)
    result = files.summarize(root.name, chosen, planned, sum(map(seconds_of, chosen)), root, arms)
    return BenchmarkMetrics(benchmark, result, jobs, _bootstrapped(result, bootstrap, seed))


def counted_rows(rows: Sequence[Row], choice: Choice | None) -> Sequence[Row]:
    """Return rows as they count under a choice about contested scores; as the results say where none is made."""
    return rows if choice is None else [dict(counted(row, choice)) for row in rows]


def _bootstrapped(result: EvaluationResult, samples: int, seed: int) -> dict[str, Any]:
    if not samples:
        return {}
    tasks = list(result.tasks.values())
    found = {
        "samples": samples,
        "seed": seed,
        "score_interval": bootstrap_interval([t.passes for t in tasks], samples=samples, seed=seed),
        "mean_reward_interval": bootstrap_interval([t.rewards for t in tasks], samples=samples, seed=seed),
    }
    return {"bootstrap": found}


def _named(row: Row, key: str) -> Iterator[str | None]:
    """What a row has under a name: its own, and that of each of its roles."""
    yield row.get(key)
    yield from (role.get(key) for role in (row.get("roles") or {}).values())
