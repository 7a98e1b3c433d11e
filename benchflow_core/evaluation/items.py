"""The items of a job: which tasks, how many trials of each, in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatch
from pathlib import Path

from benchflow_core.errors import BenchflowError, CapabilityMissing, ConfigurationError
from benchflow_core.quick import dataclass
from benchflow_core.rollout.host import Host
from benchflow_core.rollout.plan import Plan, make_plan
from benchflow_core.settings.models import JobSettings
from benchflow_core.task import find_tasks, load_task, task_digest

__all__ = ["Item", "filter_names", "plan_cells", "plan_items", "select_tasks"]


@dataclass(frozen=True)
class Item:
    """One planned rollout, or the reason why there is none."""

    task_path: Path
    trial: int
    plan: Plan | None
    refusal: BenchflowError | None = None
    arm: str | None = None
    """The cell of the job's matrix; pass it to `JobSettings.rollout`."""


def select_tasks(
    tasks_dir: Path, include: Sequence[str], exclude: Sequence[str], where: str | None = None
) -> list[Path]:
    """One task folder or a folder of them, filtered by name. `where`: how the user knows the folder."""
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
    return filter_names(found, include, exclude, where or str(tasks_dir))


def filter_names(found: Sequence[Path], include: Sequence[str], exclude: Sequence[str], where: str) -> list[Path]:
    """By globs on the tasks' names. A glob that matches nothing is most likely a typing error, and refused."""
    for glob in (*include, *exclude):
        if not any(fnmatch(p.name, glob) for p in found):
            names = [p.name for p in found]
            close = get_close_matches(glob, names, 1)
            raise ConfigurationError(
                f"'{glob}' matches no task of {where}.",
                remedy=f"Did you mean '{close[0]}'?" if close else f"There are {len(found)}: {_some(names)}.",
            )
    chosen = [p for p in found if not include or any(fnmatch(p.name, g) for g in include)]
    chosen = [p for p in chosen if not any(fnmatch(p.name, g) for g in exclude)]
    if not chosen:
        raise ConfigurationError(f"no task of {where} is left by --include and --exclude.")
    return chosen


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (" …" if len(names) > 5 else "")


def plan_items(paths: Sequence[Path], config: JobSettings, host: Host) -> list[Item]:
    """Every task planned once per arm, loaded and hashed once; trials interleaved, so that an interrupted job has
    seen every task and every arm about as often."""
    planned = plan_cells(paths, config, host)
    for item in planned:
        if isinstance(item.refusal, ConfigurationError) and not isinstance(item.refusal, CapabilityMissing):
            raise item.refusal
    refused = [item for item in planned if isinstance(item.refusal, CapabilityMissing)]
    if refused and not config.skip_unsupported:
        _refuse(refused, len(paths))
    if all(item.refusal is not None for item in planned):
        raise next(item.refusal for item in planned if item.refusal is not None)
    return [replace(item, trial=trial) for trial in range(1, config.trials + 1) for item in planned]


def plan_cells(paths: Sequence[Path], config: JobSettings, host: Host) -> list[Item]:
    """The first trial of each task in each arm, with the reason where one cannot run."""
    _refuse_job(paths, config)
    arms: list[str | None] = [arm.name for arm in config.arms()]
    return [item for path in paths for item in _plan_task(path, arms or [None], config, host)]


def _refuse_job(paths: Sequence[Path], config: JobSettings) -> None:
    if config.expected_tasks is not None and len(paths) != config.expected_tasks:
        raise ConfigurationError(f"{len(paths)} tasks are chosen, {config.expected_tasks} were expected.")
    matrix = config.matrix
    if matrix and config.scenes and (matrix.agents or matrix.models):
        raise ConfigurationError("scenes name their own agents and models: a matrix of those would do nothing.")
    if matrix and matrix.scenes and (config.scenes or config.agent or config.model or config.prompts):
        raise ConfigurationError(
            "matrix: every arm has scenes of its own, so scenes, agent, model and prompts beside it would do nothing."
        )


def _plan_task(path: Path, arms: Sequence[str | None], config: JobSettings, host: Host) -> Iterator[Item]:
    """A task that cannot be planned is that task's failure, in every arm."""
    try:
        task = load_task(path)
        digest = task_digest(task.path)
    except BenchflowError as error:
        yield from (Item(path, 1, None, error, arm) for arm in arms)
        return
    named = [name for one in config.arms() if isinstance(name := one.settings.get("agent"), str)]
    for arm in arms:
        rollout = config.rollout(path, jobs_dir=Path(), job_name="", rollout_name="", trial=1, attempt=1, arm=arm)
        try:
            others = [name for name in dict.fromkeys(named) if name != rollout.agent]
            plan = make_plan(
                rollout,
                host.plugins,
                host.env,
                loaded=(task, digest),
                elsewhere=config.executor is not None,
                others=others,
            )
            yield Item(path, 1, plan, None, arm)
        except BenchflowError as error:
            yield Item(path, 1, None, error, arm)


def _refuse(refused: Sequence[Item], total: int) -> None:
    first = refused[0].refusal
    assert first is not None
    if total == 1:
        raise first
    tasks = list(dict.fromkeys(item.task_path.name for item in refused))
    raise CapabilityMissing(
        f"{len(tasks)} of {total} tasks cannot run here ({_some(tasks)}): {first.message}",
        remedy=f"{first.remedy or ''} Or --skip-unsupported to count them as unscored.".strip(),
    )
