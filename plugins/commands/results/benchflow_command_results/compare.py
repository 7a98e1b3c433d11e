"""Compare jobs or arms, paired by task, and list everything that differs between them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from benchflow_command_results import statistics as st
from benchflow_command_results.controlled import Difference, differences
from benchflow_command_results.index import Row
from benchflow_command_results.jobs import find_folder, stored_jobs
from benchflow_command_results.metrics import counted_rows
from benchflow_core.contracts import EvaluationResult
from benchflow_core.contracts.core import ResultFiles
from benchflow_core.contracts.outcomes import Choice, arm_of
from benchflow_core.errors import ConfigurationError

__all__ = ["Comparison", "Side", "compare", "load_sides", "points"]


@dataclass(frozen=True)
class Side:
    """One of those compared."""

    name: str
    rows: Sequence[Row]
    result: EvaluationResult


@dataclass
class Comparison:
    """`other` against `base`: positive differences speak for `other`."""

    base: str
    other: str
    metric: str
    tasks: int
    """Paired: scored on both sides, with the same digest."""
    base_mean: float
    other_mean: float
    difference: float
    interval: tuple[float, float]
    """95 %, over the tasks' differences, for all comparisons made at once. It leaves out zero where p < 0.05."""
    p_value: float
    """Two-sided, for all comparisons that are made at once."""
    together: int
    """Comparisons made at once: what is said of all of them is wrong in at most 5 of 100 cases."""
    detectable: float | None
    """The smallest true difference that this comparison would have shown in 80 of 100 cases."""
    bounds: tuple[float, float]
    """The difference if every task that could not be paired had gone against `other`, and for it."""
    better: int
    worse: int
    unpaired: list[dict[str, str]] = field(default_factory=list)
    """Tasks left out, and why."""
    different: list[Difference] = field(default_factory=list)
    """Controlled fields that are not the same on both sides."""
    allowed: list[str] = field(default_factory=list)
    outcome: str = ""
    """`better`, `worse`, `equivalent`, `undecided` or `not-comparable`."""
    verdict: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def load_sides(
    files: ResultFiles, given: Sequence[str], jobs_dir: Path = Path("jobs"), contested: Choice | None = None
) -> list[Side]:
    """Load each job, `JOB:ARM`, or the arms of one job. The first as given is the base."""
    sides = [side for text in given for side in _load(files, text, jobs_dir, contested, split=len(given) == 1)]
    if len(sides) < 2:
        raise ConfigurationError(
            "there is nothing to compare with.", remedy="Name two jobs, JOB:ARM twice, or one job with several arms."
        )
    twice = [name for name, n in Counter(side.name for side in sides).items() if n > 1]
    if twice:
        raise ConfigurationError(f"'{twice[0]}' was named twice.", remedy="A job cannot be compared with itself.")
    return sides


def _load(files: ResultFiles, text: str, jobs_dir: Path, contested: Choice | None, *, split: bool) -> Sequence[Side]:
    wanted = None
    if not (Path(text).is_dir() or (jobs_dir / text).is_dir()) and ":" in text:
        text, _, wanted = text.rpartition(":")
    path = find_folder(text, jobs_dir)
    arms: dict[str, list[Row]] = {}
    planned, by_arm = 0, Counter[str]()
    for job in stored_jobs(files, path):
        planned += job.planned
        by_arm.update(job.arms)
        for row in counted_rows(job.rows, contested):
            arms.setdefault(arm_of(row), []).append(row)
    order = [arm for arm in [*by_arm, *sorted(arms.keys() - by_arm.keys())] if arm in arms]
    if not arms:
        raise ConfigurationError(f"{path} has no finished rollout.")
    if wanted is not None and wanted not in arms:
        raise ConfigurationError(f"{path} has no arm '{wanted}'.", remedy=f"Arms: {', '.join(order)}.")
    if wanted is None and not split and len(arms) > 1:
        named = ", ".join(f"{path.name}:{arm}" for arm in order)
        raise ConfigurationError(f"{path} has several arms.", remedy=f"Name one: {named}.")

    def side(name: str, arm: str, count: int | None) -> Side:
        return Side(name, arms[arm], files.summarize(name, arms[arm], count))

    if wanted is not None:
        return [side(f"{path.name}:{wanted}", wanted, by_arm.get(wanted))]
    if split:
        return [side(arm, arm, by_arm.get(arm)) for arm in order]
    return [side(str(path), order[0], planned)]


def compare(
    files: ResultFiles,
    sides: Sequence[Side],
    *,
    metric: str = "pass",
    allow: Sequence[str] = (),
    margin: float | None = None,
    samples: int = 2000,
    seed: int = 0,
) -> list[Comparison]:
    """Compare each of the others with the first. `metric` is `pass`, or the name of a reward.

    `allow`: fields that may differ without a word in the verdict. `margin`: a difference that would not matter.
    """
    base, *others = sides
    found = [_pair(base, other, metric, len(others), samples, seed) for other in others]
    for one, other in zip(found, others, strict=True):
        left_out = {entry["task"] for entry in one.unpaired}
        paired = [[row for row in side.rows if row["task_name"] not in left_out] for side in (base, other)]
        one.different, one.allowed = differences(files, *paired), list(allow)
        _judge(one, margin)
    return found


def _pair(base: Side, other: Side, metric: str, together: int, samples: int, seed: int) -> Comparison:
    left, right = _by_task(base.rows, metric), _by_task(other.rows, metric)
    unpaired, pairs = [], []
    for task in sorted(left.keys() | right.keys()):
        why = _why_not(left.get(task), right.get(task), base.name, other.name)
        if why:
            unpaired.append({"task": task, "reason": why})
        else:
            pairs.append((fmean(left[task].values), fmean(right[task].values)))
    if not pairs:
        reasons = sorted({entry["reason"] for entry in unpaired})
        raise ConfigurationError(f"no task can be compared: {'; '.join(reasons[:3])}.")
    moved = [b - a for a, b in pairs]
    passes = metric == "pass"
    interval, p = st.paired_test(moved, passes=passes, comparisons=together, samples=samples, seed=seed)
    n, lost = len(moved), len(unpaired)
    total = math.fsum(moved)
    return Comparison(
        base=base.name,
        other=other.name,
        metric=metric,
        tasks=n,
        base_mean=fmean(a for a, _ in pairs),
        other_mean=fmean(b for _, b in pairs),
        difference=total / n,
        interval=interval,
        p_value=p,
        together=together,
        detectable=st.detectable_difference(moved, passes=passes, comparisons=together),
        bounds=((total - lost) / (n + lost), (total + lost) / (n + lost)),
        better=sum(d > 0 for d in moved),
        worse=sum(d < 0 for d in moved),
        unpaired=unpaired,
    )


@dataclass
class _Task:
    digests: set[str] = field(default_factory=set)
    values: list[float] = field(default_factory=list)


def _by_task(rows: Sequence[Row], metric: str) -> dict[str, _Task]:
    tasks: dict[str, _Task] = {}
    for row in rows:
        task = tasks.setdefault(row["task_name"], _Task())
        task.digests.add(_digest(row))
        rewards: Mapping[str, float] = row.get("rewards") or {}
        value = rewards.get("reward" if metric == "pass" else metric)
        if value is not None:
            task.values.append(float(value == 1) if metric == "pass" else float(value))
    return tasks


def _digest(row: Row) -> str:
    """What the score was made with: a rollout that was scored again may have met other tests."""
    return str((row.get("verdict") or {}).get("task_digest") or row.get("task_digest") or "")


def _why_not(left: _Task | None, right: _Task | None, base: str, other: str) -> str | None:
    if left is None or right is None:
        return f"not run in {base if left is None else other}"
    if left.digests != right.digests or len(left.digests) > 1:
        return "the task changed: its digests differ"
    if not left.values or not right.values:
        return f"not scored in {base if not left.values else other}"
    return None


# --- the verdict --------------------------------------------------------------------------------------------


def _judge(one: Comparison, margin: float | None) -> None:
    low, high = one.interval
    blocking = [d.field for d in one.different if d.blocks and d.field not in one.allowed]
    if blocking:
        one.outcome = "not-comparable"
        one.verdict = (
            f"No verdict: {_and(blocking)} {'differs' if len(blocking) == 1 else 'differ'}, "
            f"and such scores do not mean the same. --allow-different {blocking[0]} compares them all the same."
        )
        return
    if one.p_value < st.ALPHA:
        one.outcome = "better" if one.difference > 0 else "worse"
    elif margin is not None and low > -margin and high < margin:
        one.outcome = "equivalent"
    else:
        one.outcome = "undecided"
    one.verdict = _words(one, margin) + _caveats(one)


def _words(one: Comparison, margin: float | None) -> str:
    gap = points(abs(one.difference), one.metric)
    if one.outcome in ("better", "worse"):
        return (
            f"{one.other} is {one.outcome} than {one.base} by {gap} on these {one.tasks} tasks (p = {one.p_value:.2g})."
        )
    if one.outcome == "equivalent":
        return f"{one.other} and {one.base} are equivalent: any difference is below {points(margin or 0, one.metric)}."
    fewest = st.fewest_tasks(one.together)
    if one.tasks < fewest:
        at_once = f" for {one.together} comparisons at once" if one.together > 1 else ""
        return (
            f"No difference can be shown with {one.tasks} tasks, however large it is: {fewest} are the fewest{at_once}."
        )
    if one.detectable is None:
        return f"No difference was shown: it is {gap} in each of these {one.tasks} tasks."
    return (
        f"No difference was shown: {gap} may be chance (p = {one.p_value:.2g}). With these {one.tasks} tasks a true "
        f"difference of {points(one.detectable, one.metric)} is shown in four of five cases; a smaller one may exist."
    )


def _caveats(one: Comparison) -> str:
    also = [d.field for d in one.different if not d.treatment and d.field not in one.allowed]
    text = f" Not only what is compared differs: {_and(also)} may be the cause." if also else ""
    low, high = one.bounds
    if one.unpaired and one.outcome in ("better", "worse") and low < 0 < high:
        text += (
            f" {len(one.unpaired)} tasks could not be paired: had they all gone the other way, it would be reversed."
        )
    return text


def points(value: float, metric: str) -> str:
    """Return a difference as people say it: points of a hundred for passes, else the number."""
    return f"{value * 100:.1f} points" if metric == "pass" else f"{value:.3g}"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
