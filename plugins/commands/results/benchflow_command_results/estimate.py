"""What a large job will take in disk and money, judged by an earlier job with the same agent and model."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

from benchflow_core.contracts.core import ResultFiles

__all__ = ["estimate"]

_JOBS, _SAMPLE = 20, 25


def estimate(
    files: ResultFiles, jobs_dir: Path, job_name: str, rollouts: int, agent: str, model: str | None
) -> dict[str, Any]:
    """Read a few rollouts of the latest such job and nothing else. None: not known, or no job to judge by."""
    found: dict[str, Any] = {"rollouts": rollouts, "free_bytes": shutil.disk_usage(jobs_dir).free}
    found |= {"disk_bytes": None, "cost_usd": None, "judged_by": None}
    for job in _earlier(jobs_dir, job_name):
        summary = files.read_object(job / "summary.json")
        if (summary.get("agent"), summary.get("model")) != (agent, model):
            continue
        sample = list(_sample(job))
        if sample:
            costs = [_cost(files.read_object(folder / "result.json")) for folder in sample]
            known = [cost for cost in costs if cost is not None]
            found["disk_bytes"] = int(fmean(map(_size, sample)) * rollouts)
            found["cost_usd"] = fmean(known) * rollouts if any(known) else None
            return {**found, "judged_by": str(job)}
    return found


def _earlier(jobs_dir: Path, job_name: str) -> list[Path]:
    """The latest ones first; names begin with the time unless the user chose them."""
    with os.scandir(jobs_dir) as entries:
        names = sorted((e.name for e in entries if e.is_dir() and e.name != job_name), reverse=True)
    return [jobs_dir / name for name in names[:_JOBS]]


def _sample(job: Path) -> Iterator[Path]:
    with os.scandir(job) as entries:
        yield from (Path(e.path) for e in islice((e for e in entries if e.is_dir() and "__" in e.name), _SAMPLE))


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _cost(result: Mapping[str, Any]) -> float | None:
    """What agents, judges and simulated users of a rollout cost together; `None` where a price is not known."""
    agent = result.get("agent_result") or {}
    gateway = (agent.get("usage_details") or {}).get("gateway") or {}
    used = [(agent.get("total_tokens"), agent.get("cost_usd"))]
    for usage in (gateway.get("judge") or {}, gateway.get("user") or {}):
        used.append((usage.get("input_tokens") or usage.get("output_tokens"), usage.get("cost_usd")))
    if any(tokens and cost is None for tokens, cost in used):
        return None
    return sum(cost or 0.0 for _, cost in used)
