"""Metrics over finished jobs: read from the plain files, through an index that only saves time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from benchflow_core.evaluation.statistics import bootstrap_interval
from benchflow_core.evaluation.summary import EvaluationResult, Tally, team_of
from benchflow_core.quick import dataclass
from benchflow_core.results.contested import Choice, counted_rows
from benchflow_core.results.index import Row
from benchflow_core.results.jobs import StoredJob, stored_jobs

__all__ = ["BenchmarkMetrics", "collect_metrics", "index_cache", "job_result", "job_team", "mixed_lines"]


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
    jobs_dir: str | Path,
    benchmark: str = "",
    agent: str = "",
    model: str = "",
    *,
    arm: str = "",
    contested: Choice | None = None,
    bootstrap: int = 0,
    seed: int = 0,
) -> BenchmarkMetrics:
    """Every finished rollout below a folder, optionally of one agent, model or arm.

    `bootstrap`: also an interval from so many resamples of the tasks, drawn from `seed`.
    """
    root = Path(jobs_dir)
    wanted = {"agent": agent, "model": model, "arm": arm}
    tally, jobs, planned, seconds = Tally(root.name), [], 0, 0.0
    arms: Counter[str] = Counter()
    for job in stored_jobs(root, index_cache()):
        rows = [row for row in job.rows if all(not v or v in _named(row, key) for key, v in wanted.items())]
        jobs.append(job.name)
        planned += len(rows) if any(wanted.values()) else job.planned
        arms.update({} if any(wanted.values()) else job.arms)
        for row in counted_rows(rows, contested):
            seconds += _seconds(row)
            tally.add(row)
    result = tally.result(planned, seconds, root, arms)
    return BenchmarkMetrics(benchmark, result, jobs, _bootstrapped(result, bootstrap, seed))


def job_result(job: StoredJob) -> EvaluationResult:
    """What the rollouts of a job say now, whatever its summary said when it was written."""
    tally = Tally(job.name)
    for row in job.rows:
        tally.add(row)
    elapsed = job.about.get("elapsed_sec")
    seconds = elapsed if elapsed is not None else sum(map(_seconds, job.rows))
    return tally.result(job.planned, seconds, job.path, job.arms)


def job_team(job: StoredJob) -> dict[str, str | None]:
    """Who ran, and where: all agents and models of all arms, in the order of these, and the sandbox."""
    place = {arm: n for n, arm in enumerate(job.arms)}
    rows = sorted(job.rows, key=lambda row: place.get(row["arm"], 0))
    roles = [role for row in rows for role in (row["roles"] or {"": row}).values()]
    agents, models = team_of({"roles": dict(enumerate(roles))})
    return {
        "agent": agents or job.about.get("agent"),
        "model": models or job.about.get("model"),
        "sandbox": next((row["sandbox"] for row in job.rows if row["sandbox"]), job.about.get("sandbox")),
    }


def mixed_lines(result: EvaluationResult) -> list[str]:
    """What was put into one mean and does not belong there; one line each, to be shown with every score."""
    lines = []
    for what, counts in (("image fidelity", result.fidelity), ("verifier isolation", result.isolation)):
        if len(counts) > 1:
            parts = ", ".join(f"{n} {name}" for name, n in sorted(counts.items()))
            lines.append(f"{what} differs between rollouts: {parts}.")
    if set(result.fidelity) == {"substituted"}:
        lines.append(f"all {result.scored} ran on a substituted image: not comparable with exact ones.")
    for name, part in ({} if result.arms else result.strata).items():
        lines.append(f"  {name}: {part['passed']}/{part['scored']} ({part['score_ratio']:.1%})")
    return lines


def index_cache() -> Path:
    from benchflow_core.dotenv import user_env
    from benchflow_core.results.layout import cache_dir

    return cache_dir(user_env())


def _bootstrapped(result: EvaluationResult, samples: int, seed: int) -> dict[str, Any]:
    if not samples:
        return {}
    tasks = list(result.tasks.values())
    return {
        "bootstrap": {
            "samples": samples,
            "seed": seed,
            "score_interval": bootstrap_interval([t.passes for t in tasks], samples=samples, seed=seed),
            "mean_reward_interval": bootstrap_interval([t.rewards for t in tasks], samples=samples, seed=seed),
        }
    }


def _named(row: Row, key: str) -> Iterator[str | None]:
    """What a row has under a name: its own, and that of each of its roles."""
    yield row.get(key)
    yield from (role.get(key) for role in (row.get("roles") or {}).values())


def _seconds(row: Row) -> float:
    return float((row.get("timing") or {}).get("total") or 0.0)
