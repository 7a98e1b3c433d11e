"""What a large job will take in disk and money, judged by an earlier job with the same agent and model."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from benchflow_core.evaluation.budget import spent_of
from benchflow_core.quick import dataclass
from benchflow_core.results.files import read_json

__all__ = ["LARGE", "Estimate", "estimate"]

LARGE = 50
"""Rollouts from which an estimate is worth a line."""
_JOBS, _SAMPLE = 20, 25


@dataclass(frozen=True, slots=True)
class Estimate:
    rollouts: int
    free_bytes: int
    disk_bytes: int | None = None
    """None: no earlier job to judge by."""
    cost_usd: float | None = None
    """None: not known."""
    judged_by: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def estimate(jobs_dir: Path, job_name: str, rollouts: int, agent: str, model: str | None) -> Estimate:
    """Reads a few rollouts of the latest such job and nothing else."""
    free = shutil.disk_usage(jobs_dir).free
    for job in _earlier(jobs_dir, job_name):
        summary = _json(job / "summary.json")
        if (summary.get("agent"), summary.get("model")) != (agent, model):
            continue
        sample = list(_rollouts(job))
        if sample:
            spent = [spent_of(_json(folder / "result.json")) for folder in sample]
            known = [one.cost or 0 for one in spent if not one.unknown]
            cost = fmean(known) * rollouts if known and any(known) else None
            disk = fmean(_size(folder) for folder in sample) * rollouts
            return Estimate(rollouts, free, int(disk), cost, str(job))
    return Estimate(rollouts, free)


def _earlier(jobs_dir: Path, job_name: str) -> list[Path]:
    """The latest ones first; names begin with the time unless the user chose them."""
    with os.scandir(jobs_dir) as found:
        names = sorted((e.name for e in found if e.is_dir() and e.name != job_name), reverse=True)
    return [jobs_dir / name for name in names[:_JOBS]]


def _rollouts(job: Path) -> Iterator[Path]:
    with os.scandir(job) as found:
        for number, entry in enumerate(e for e in found if e.is_dir() and "__" in e.name):
            if number == _SAMPLE:
                return
            yield Path(entry.path)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _json(path: Path) -> dict[str, Any]:
    try:
        return dict(read_json(path))
    except (OSError, ValueError, TypeError):
        return {}
