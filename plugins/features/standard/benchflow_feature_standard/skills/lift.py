"""What skills are worth: the arm with them against the arm without, paired by task."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from benchflow_core.contracts import ResultsReader
from benchflow_core.errors import ConfigurationError

__all__ = ["MODES", "Lift", "measure_lifts"]

MODES: Final = ("no-skill", "with-skill")
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Lift:
    """The comparison, and whether the skills were used at all."""

    comparison: Mapping[str, Any]
    tasks: list[dict[str, Any]]
    """Mean reward without and with, and skill calls with, of each task that has both."""
    runs: int
    used: int
    """Of the rollouts with skills: all that were scored, and those in which a skill was called."""

    def to_json(self) -> dict[str, Any]:
        return {**self.comparison, "by_task": self.tasks, "runs": self.runs, "used": self.used}


def measure_lifts(reader: ResultsReader, job_dir: Path, *, metric: str = "pass") -> dict[str, Lift]:
    """Return lifts by agent and model, where the job has several; a single one has no name."""
    sides: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in reader.job(job_dir).rows:
        sides[row["side"]].append(row)
    found: dict[str, Lift] = {}
    for name, with_ in sides.items():
        who = name.removesuffix(MODES[1])
        without = f"{who}{MODES[0]}"
        if who != name and without in sides:
            scored = [row for row in with_ if row.get("rewards") is not None]
            (comparison,) = reader.compare([job_dir], metric, arms=[without, name])
            used = sum(bool(_calls(row)) for row in scored)
            found[who.rstrip("+")] = Lift(comparison, _by_task(sides[without], scored), len(scored), used)
    if not found:
        raise ConfigurationError(f"{job_dir} has the arms {', '.join(sorted(sides))}, not {' and '.join(MODES)}.")
    return found


def _by_task(without: Rows, with_: Rows) -> list[dict[str, Any]]:
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


def _calls(row: Mapping[str, Any]) -> int:
    return int(row.get("n_skill_invocations") or 0)
