"""The folders of a job on disk: which rollouts are finished, and where earlier attempts lie.

A rollout is finished where its `result.json` says so; that file is written last and in one step, so a killed job never
leaves half of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchflow_core import __version__
from benchflow_core.contracts.common import Usage
from benchflow_core.errors import BenchflowError
from benchflow_core.evaluation.jobfile import Entry
from benchflow_core.results import checked
from benchflow_core.results.clock import now
from benchflow_core.results.files import write_json
from benchflow_core.results.models import ROW, marked
from benchflow_core.rollout.result import RolloutResult
from benchflow_core.settings.models import RolloutConfig
from benchflow_core.task import task_digest

__all__ = [
    "ATTEMPTS",
    "cancelled",
    "earlier_attempts",
    "read_result",
    "row_of",
    "set_aside",
    "write_broken",
]

ATTEMPTS = "attempts"
_KEPT = marked(ROW)


def read_result(job_dir: Path, name: str) -> dict[str, Any] | None:
    """What a rollout's `result.json` says, or none where there is none to be read."""
    try:
        return checked.read_result(job_dir / name)
    except (OSError, ValueError):
        return None


def row_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """What is shown of a finished rollout; the rest stays on disk."""
    agent = result.get("agent_result") or {}
    spent = {"tokens": agent.get("total_tokens"), "cost_usd": agent.get("cost_usd")}
    return {**{key: result.get(key) for key in _KEPT}, **spent}


def cancelled(result: Mapping[str, Any]) -> bool:
    return result.get("rewards") is None and (result.get("error_info") or {}).get("kind") == "cancelled"


def set_aside(job_dir: Path, name: str) -> int:
    """Move what an earlier attempt left, finished or not, below `attempts/`. Gives the number of the next attempt."""
    number = len(earlier_attempts(job_dir, name)) + 1
    folder = job_dir / name
    if not folder.exists():
        return number
    target = job_dir / ATTEMPTS / f"{name}.{number}"
    target.parent.mkdir(exist_ok=True)
    while target.exists():
        number += 1
        target = target.with_name(f"{name}.{number}")
    folder.rename(target)
    return number + 1


def earlier_attempts(job_dir: Path, name: str) -> list[Path]:
    """Only asked for rollouts that were tried before: a job of many never lists the folder for each."""
    folder = job_dir / ATTEMPTS
    number, found = 1, []
    while (path := folder / f"{name}.{number}").is_dir():
        found.append(path)
        number += 1
    return found


def write_broken(
    job_dir: Path, entry: Entry, error: BenchflowError, config: RolloutConfig, feature_keys: Iterable[str] = ()
) -> dict[str, Any]:
    """Write a typed result of the same shape for a rollout that never came to write its own.

    `feature_keys`: keys of features; those that are settings are known.
    """
    path = job_dir / entry.name / "result.json"
    plan, item = entry.item.plan, entry.item
    first = next(iter(plan.roles.values())) if plan else None
    result = RolloutResult(
        task_name=item.task_path.name,
        rollout_name=entry.name,
        job_name=job_dir.name,
        agent=first.agent if first else config.agent or "",
        model=first.model if first else config.model,
        sandbox=plan.sandbox.name if plan else "",
        error=error.message,
        error_info=error.to_json(),
        usage=Usage(),
        trial=item.trial,
        arm=item.arm,
        features={key: getattr(config, key) for key in feature_keys if hasattr(config, key)},
        source=dict(config.source_provenance) if config.source_provenance else None,
        dataset_name=(config.dataset or {}).get("name"),
        dataset_version=(config.dataset or {}).get("version"),
        attempt=entry.attempt,
        task_digest=plan.digest if plan else task_digest(item.task_path),
        plugins=plan.plugins() if plan else [],
        core_version=__version__,
        started_at=now(),
        finished_at=now(),
    )
    value = result.to_json()
    if not path.exists():
        write_json(path, value)
    return value
