"""Read jobs back from disk. What counts is the rollouts' own files; a summary only adds what was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchflow_command_results.index import JobFolder, Row, find_jobs, read_rows
from benchflow_core.contracts import EvaluationResult
from benchflow_core.contracts.core import ResultFiles
from benchflow_core.contracts.outcomes import planned_arms, planned_items, team_of
from benchflow_core.errors import ConfigurationError

__all__ = [
    "StoredJob",
    "find_folder",
    "finished_rollouts",
    "job_result",
    "job_team",
    "result_of",
    "seconds_of",
    "stored_jobs",
]

_MOST = 10**15
"""Of a count in a file that anybody may have written."""


@dataclass(frozen=True)
class StoredJob:
    """A folder of rollouts as it is on disk now."""

    path: Path
    rows: list[Row]
    """One per finished rollout that counts; superseded attempts lie below `attempts/`."""
    unfinished: list[str]
    """Rollouts that were begun and left no result."""
    about: dict[str, Any]
    """`summary.json`, or `{}` where the job has not ended."""
    plan: dict[str, Any]
    """`job.json`."""
    planned: int
    arms: dict[str, int]
    """Planned rollouts of each arm, in the order of the matrix; empty where the job has none."""

    @property
    def name(self) -> str:
        return str(self.about.get("job_name") or self.path.name)

    @property
    def finished(self) -> bool:
        return bool(self.about)

    @property
    def began(self) -> str:
        return min((row["started_at"] or "" for row in self.rows), default="")


def find_folder(given: str, jobs_dir: Path = Path("jobs")) -> Path:
    """Return a job or rollout by its path, by its name below `jobs_dir`, or `latest`: the newest job there."""
    for path in (Path(given), jobs_dir / given):
        if path.is_dir():
            return path
    known = list(jobs_dir.iterdir()) if jobs_dir.is_dir() else []
    if given == "latest":
        jobs = [path for path in known if path.is_dir()]
        if jobs:
            return max(jobs, key=lambda path: (path.stat().st_mtime, path.name))
        raise ConfigurationError(f"there is no job in {jobs_dir}.", remedy="Name one, or run: bench eval create")
    from difflib import get_close_matches

    close = get_close_matches(Path(given).name, [path.name for path in known], n=2)
    hint = f"Did you mean {' or '.join(close)}?" if close else "bench eval list shows what there is."
    raise ConfigurationError(f"there is no job or rollout '{given}'.", remedy=hint)


def stored_jobs(files: ResultFiles, root: Path, *, cached: bool = True) -> Iterator[StoredJob]:
    """Every job below a folder, by name; `root` may also be one job or one rollout."""
    if not root.is_dir():
        raise ConfigurationError(
            f"{root} is not a folder.", remedy="Name a job, or the folder that --jobs-dir wrote to."
        )
    cache = files.cache_dir() if cached else None
    for folder in find_jobs(root):
        yield _stored(files, folder, cache)


def _stored(files: ResultFiles, folder: JobFolder, cache: Path | None) -> StoredJob:
    path = Path(folder.path)
    about = _plausible(files.read_object(path / "summary.json")) if folder.has_summary else {}
    rows, plan = read_rows(files, folder, cache), files.read_object(path / "job.json")
    total, known = about.get("total"), len(planned_items(plan))
    if not known and isinstance(total, int) and 0 <= total < _MOST:
        known = total
    planned = max(len(rows) + len(folder.unfinished), known)
    return StoredJob(path, rows, folder.unfinished, about, plan, planned, planned_arms(plan))


def _plausible(about: dict[str, Any]) -> dict[str, Any]:
    """A summary without what is not of its published type: the rollouts' own files say it anyway."""
    for name in ("elapsed_sec", "total_tokens", "total_cost_usd"):
        value = about.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float | None) or not -_MOST < (value or 0) < _MOST:
            del about[name]
    for name in ("job_name", "agent", "model", "sandbox"):
        if not isinstance(about.get(name), str | None):
            del about[name]
    return about


def finished_rollouts(root: Path) -> list[Path]:
    """Return the folder of every rollout below a folder that has a result and counts."""
    return [Path(job.path, name) for job in find_jobs(root) for name in job.rollouts]


def result_of(files: ResultFiles, folder: Path) -> dict[str, Any]:
    """Return the `result.json` of a rollout. Raises `ConfigurationError` where it cannot be read."""
    result = files.read_result(folder)
    if result is None or (result.get("error_info") or {}).get("code") == "unreadable_result":
        why = result["error"] if result else "its result.json is no result of ours"
        raise ConfigurationError(f"{folder}: {why}.")
    return result


def job_result(files: ResultFiles, job: StoredJob) -> EvaluationResult:
    """Return what the rollouts of a job say now, whatever its summary said when it was written."""
    elapsed = job.about.get("elapsed_sec")
    seconds = sum(map(seconds_of, job.rows)) if elapsed is None else elapsed
    return files.summarize(job.name, job.rows, job.planned, seconds, job.path, job.arms)


def seconds_of(row: Row) -> float:
    """Return how long a rollout took."""
    return float((row.get("timing") or {}).get("total") or 0.0)


def job_team(job: StoredJob) -> dict[str, str | None]:
    """Return who ran, and where: agents and models of all arms, in the order of these, and the sandbox."""
    place = {arm: n for n, arm in enumerate(job.arms)}
    rows = sorted(job.rows, key=lambda row: place.get(row["arm"], 0))
    roles = [role for row in rows for role in (row["roles"] or {"": row}).values()]
    agents, models = team_of({"roles": dict(enumerate(roles))})
    return {
        "agent": agents or job.about.get("agent"),
        "model": models or job.about.get("model"),
        "sandbox": next((row["sandbox"] for row in job.rows if row["sandbox"]), job.about.get("sandbox")),
    }
