"""What skills are worth: the arm with them against the arm without, paired by task."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation.compare import Comparison, Side, compare, load_sides
from benchflow_core.quick import dataclass
from benchflow_core.results.index import Row

__all__ = ["MODES", "Lift", "measure_lifts"]

MODES: Final = ("no-skill", "with-skill")


@dataclass(frozen=True)
class Lift:
    """The comparison, and whether the skills were used at all."""

    comparison: Comparison
    tasks: list[dict[str, Any]]
    """Mean reward without and with, and skill calls with, of each task that has both."""
    runs: int
    used: int
    """Of the rollouts with skills: all that were scored, and those in which a skill was called."""

    def to_json(self) -> dict[str, Any]:
        return {**self.comparison.to_json(), "by_task": self.tasks, "runs": self.runs, "used": self.used}


def measure_lifts(job_dir: Path, *, metric: str = "pass") -> dict[str, Lift]:
    """By agent and model, where the job has several; a single one has no name."""
    sides = {side.name: side for side in load_sides([str(job_dir)])}
    found: dict[str, Lift] = {}
    for name, with_ in sides.items():
        who = name.removesuffix(MODES[1])
        if who != name and f"{who}{MODES[0]}" in sides:
            found[who.rstrip("+")] = _measure(sides[f"{who}{MODES[0]}"], with_, metric)
    if not found:
        raise ConfigurationError(f"{job_dir} has the arms {', '.join(sorted(sides))}, not {' and '.join(MODES)}.")
    return found


def _measure(without: Side, with_: Side, metric: str) -> Lift:
    scored = [row for row in with_.rows if row.get("rewards") is not None]
    found = compare([without, with_], metric=metric)[0]
    return Lift(found, _by_task(without.rows, scored), len(scored), sum(bool(_calls(row)) for row in scored))


def _by_task(without: Any, with_: Any) -> list[dict[str, Any]]:
    rewards: dict[str, tuple[list[float], list[float], list[int]]] = defaultdict(lambda: ([], [], []))
    for place, rows in enumerate((without, with_)):
        for row in rows:
            value = (row.get("rewards") or {}).get("reward")
            if value is not None:
                rewards[row["task_name"]][place].append(value)
                if place:
                    rewards[row["task_name"]][2].append(_calls(row))
    return [
        {"task": task, "without": fmean(a), "with": fmean(b), "invocations": sum(calls)}
        for task, (a, b, calls) in sorted(rewards.items())
        if a and b
    ]


def _calls(row: Row) -> int:
    return int(row.get("n_skill_invocations") or 0)
