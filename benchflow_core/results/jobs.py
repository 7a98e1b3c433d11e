"""Reading jobs back from disk. What counts is the rollouts' own files; a summary only adds what was asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchflow_core.errors import ConfigurationError
from benchflow_core.quick import dataclass
from benchflow_core.results.checked import read_object, readable_result
from benchflow_core.results.index import JobFolder, Row, find_jobs, read_rows

__all__ = ["StoredJob", "find_folder", "planned_arms", "planned_items", "rollout_results", "stored_jobs"]

_PLAN = "job.json"
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
    finished: bool
    planned: int
    arms: dict[str, int]
    """Planned rollouts of each arm, in the order of the matrix; empty where the job has none."""

    @property
    def name(self) -> str:
        return str(self.about.get("job_name") or self.path.name)


def find_folder(given: str, jobs_dir: Path = Path("jobs")) -> Path:
    """A job or rollout by its path, by its name below `jobs_dir`, or `latest`: the newest job there."""
    for path in (Path(given), jobs_dir / given):
        if path.is_dir():
            return path
    if given == "latest":
        jobs = [path for path in jobs_dir.iterdir() if path.is_dir()] if jobs_dir.is_dir() else []
        if jobs:
            return max(jobs, key=lambda path: (path.stat().st_mtime, path.name))
        raise ConfigurationError(f"there is no job in {jobs_dir}.", remedy="Name one, or run: bench eval create")
    from difflib import get_close_matches

    known = [path.name for path in jobs_dir.iterdir()] if jobs_dir.is_dir() else []
    close = get_close_matches(Path(given).name, known, n=2)
    hint = f"Did you mean {' or '.join(close)}?" if close else "bench eval list shows what there is."
    raise ConfigurationError(f"there is no job or rollout '{given}'.", remedy=hint)


def stored_jobs(root: Path, cache: Path | None = None) -> Iterator[StoredJob]:
    """Every job below a folder, by name; `root` may also be one job or one rollout."""
    if not root.is_dir():
        raise ConfigurationError(
            f"{root} is not a folder.", remedy="Name a job, or the folder that --jobs-dir wrote to."
        )
    for folder in find_jobs(root):
        yield _stored(folder, cache)


def _stored(folder: JobFolder, cache: Path | None) -> StoredJob:
    path = Path(folder.path)
    about = _summary(path / "summary.json") if folder.has_summary else {}
    rows = read_rows(folder, cache)
    plan = read_object(path / _PLAN)
    items = planned_items(plan)
    total = about.get("total")
    known = len(items) if items else total if isinstance(total, int) and 0 <= total < _MOST else 0
    planned = max(len(rows) + len(folder.unfinished), known)
    return StoredJob(path, rows, folder.unfinished, about, bool(about), planned, planned_arms(plan))


def planned_arms(plan: Mapping[str, Any]) -> dict[str, int]:
    """How many rollouts each arm has in a `job.json`, in the order of the matrix."""
    counts = Counter(str(item["arm"]) for item in planned_items(plan) if item.get("arm"))
    arms = plan.get("arms")
    order = [arm for arm in arms if isinstance(arm, str) and arm in counts] if isinstance(arms, list) else []
    return {arm: counts[arm] for arm in dict.fromkeys([*order, *sorted(counts)])}


def planned_items(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rollouts that the job set out to run, as its plan names them."""
    items = plan.get("items")
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _summary(path: Path) -> dict[str, Any]:
    """Without what is not of its published type: the rollouts' own files say it anyway."""
    about = read_object(path)
    for name in ("elapsed_sec", "total_tokens", "total_cost_usd"):
        value = about.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float | None) or not -_MOST < (value or 0) < _MOST:
            del about[name]
    for name in ("job_name", "agent", "model", "sandbox"):
        if not isinstance(about.get(name), str | None):
            del about[name]
    return about


def rollout_results(job_dir: Path) -> list[dict[str, Any]]:
    """The whole `result.json` of every rollout that counts."""
    if not job_dir.is_dir():
        raise ConfigurationError(f"{job_dir} is not a folder.")
    paths = [Path(folder.path, name) for folder in find_jobs(job_dir) for name in folder.rollouts]
    return [{**readable_result(path), "rollout_dir": str(path)} for path in paths]
