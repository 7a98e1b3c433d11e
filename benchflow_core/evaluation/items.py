"""The items of a job: which tasks, how many trials of each, in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from benchflow_core.errors import BenchflowError, CapabilityMissing, ConfigurationError
from benchflow_core.evaluation.config import EvaluationConfig
from benchflow_core.rollout.host import Host
from benchflow_core.rollout.plan import Plan, make_plan
from benchflow_core.task import find_tasks

__all__ = ["Item", "plan_items", "select_tasks"]


@dataclass(frozen=True)
class Item:
    """One planned rollout, or the reason why there is none."""

    task_path: Path
    trial: int
    plan: Plan | None
    refusal: BenchflowError | None = None


def select_tasks(tasks_dir: Path, include: Sequence[str], exclude: Sequence[str]) -> list[Path]:
    """One task folder or a folder of them, filtered by name."""
    if not tasks_dir.exists():
        raise ConfigurationError(
            f"{tasks_dir} does not exist.", remedy="Point --tasks-dir at a task or a folder of tasks."
        )
    found = find_tasks(tasks_dir)
    if not found:
        raise ConfigurationError(
            f"no task in {tasks_dir}.",
            remedy="A task is a folder with task.toml or task.md; bench tasks init makes one.",
        )
    chosen = [p for p in found if not include or any(fnmatch(p.name, g) for g in include)]
    chosen = [p for p in chosen if not any(fnmatch(p.name, g) for g in exclude)]
    if not chosen:
        raise ConfigurationError(
            f"no task of {tasks_dir} is left by --include/--exclude.",
            remedy=f"There are {len(found)}: {', '.join(p.name for p in found[:5])} …",
        )
    return chosen


def plan_items(paths: Sequence[Path], config: EvaluationConfig, host: Host) -> list[Item]:
    """Every task planned once; trials interleaved, so that an interrupted job has seen every task about as often."""
    planned = [_plan(path, config, host) for path in paths]
    refused = [(p, why) for p, (_, why) in zip(paths, planned, strict=True) if isinstance(why, CapabilityMissing)]
    if refused and not config.skip_unsupported:
        _refuse(refused, len(paths))
    if all(why is not None for _, why in planned):
        first = next(why for _, why in planned if why is not None)
        raise first
    return [
        Item(path, trial, plan, why)
        for trial in range(1, config.trials + 1)
        for path, (plan, why) in zip(paths, planned, strict=True)
    ]


def _plan(path: Path, config: EvaluationConfig, host: Host) -> tuple[Plan | None, BenchflowError | None]:
    """A task that cannot be planned is that task's failure. A wrong agent or sandbox is everybody's and goes up."""
    rollout = config.rollout(path, jobs_dir=Path(), job_name="", rollout_name="", trial=1, attempt=1)
    try:
        return make_plan(rollout, host.plugins, host.env), None
    except ConfigurationError as error:
        if isinstance(error, CapabilityMissing):
            return None, error
        raise
    except BenchflowError as error:
        return None, error


def _refuse(refused: Sequence[tuple[Path, CapabilityMissing]], total: int) -> None:
    first = refused[0][1]
    if total == 1:
        raise first
    names = ", ".join(p.name for p, _ in refused[:5]) + (" …" if len(refused) > 5 else "")
    raise CapabilityMissing(
        f"{len(refused)} of {total} tasks cannot run here ({names}): {first.message}",
        remedy=f"{first.remedy or ''} Or --skip-unsupported to count them as unscored.".strip(),
    )
