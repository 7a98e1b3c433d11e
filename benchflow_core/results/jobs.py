"""Reading finished jobs back from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchflow_core.errors import ConfigurationError
from benchflow_core.results.files import read_json

__all__ = ["finished_jobs", "rollout_results"]


def finished_jobs(jobs_dir: Path) -> list[dict[str, Any]]:
    """The summaries below a folder, oldest first."""
    if not jobs_dir.is_dir():
        raise ConfigurationError(f"{jobs_dir} is not a folder.", remedy="Name the folder that --jobs-dir wrote to.")
    found = sorted(jobs_dir.glob("**/summary.json"), key=lambda p: p.stat().st_mtime)
    return [{**read_json(path), "job_dir": str(path.parent)} for path in found]


def rollout_results(job_dir: Path) -> list[dict[str, Any]]:
    """Every rollout that counts; superseded attempts lie below `attempts/`."""
    if not job_dir.is_dir():
        raise ConfigurationError(f"{job_dir} is not a folder.")
    paths = sorted(p for p in job_dir.glob("**/result.json") if "attempts" not in p.relative_to(job_dir).parts)
    return [{**read_json(path), "rollout_dir": str(path.parent)} for path in paths]
