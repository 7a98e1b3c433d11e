"""Jobs side by side: the core's verdict, and every task with what became of it, those that flipped first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchflow_command_view.catalogue import safe
from benchflow_core.contracts import JobResults, ResultsReader
from benchflow_core.errors import BenchflowError

__all__ = ["compare_document"]

Sides = Mapping[str, tuple[Path, JobResults]]


def compare_document(reader: ResultsReader, jobs: Sides) -> dict[str, Any]:
    """Of one job, its arms with each other; of several, each arm of each with the first."""
    sides = _sides(jobs)
    comparisons: list[dict[str, Any]] = []
    problem = None
    try:
        comparisons = reader.compare(
            [side["what"] for side in sides] if len(jobs) > 1 else [path for path, _ in jobs.values()]
        )
    except BenchflowError as error:
        problem = str(error)
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = f"the results cannot be compared: {error}"
    shown = {str(path): job.name for path, job in jobs.values()}
    for path, name in sorted(shown.items(), key=lambda pair: -len(pair[0])):
        problem = problem and problem.replace(path, name)
        for one in comparisons:
            one["verdict"] = one["verdict"].replace(path, name)
            for entry in one["unpaired"]:
                entry["reason"] = entry["reason"].replace(path, name)
    for one in comparisons:
        one["base"], one["other"] = shown.get(one["base"], one["base"]), shown.get(one["other"], one["other"])
    return {
        "sides": [{key: side[key] for key in ("job", "name", "score", "scored", "total")} for side in sides],
        "comparisons": comparisons,
        "problem": problem,
        "tasks": _tasks(sides),
    }


def _sides(jobs: Sides) -> list[dict[str, Any]]:
    return [side for jid, (path, job) in jobs.items() for side in _arms(jid, path, job, alone=len(jobs) == 1)]


def _arms(jid: str, path: Path, job: JobResults, *, alone: bool) -> Iterator[dict[str, Any]]:
    arms: dict[str, list[Mapping[str, Any]]] = {}
    for row in job.rows:
        arms.setdefault(str(row.get("side") or ""), []).append(row)
    if not alone and len(arms) < 2:
        yield {"what": str(path), **_side(jid, job.name, job.rows, job.summary)}
        return
    summaries = job.summary.get("arms") or {}
    for arm in [*(arm for arm in summaries if arm in arms), *sorted(arms.keys() - summaries.keys())]:
        rows = arms[arm]
        name = arm if alone else f"{job.name}:{arm}"
        yield {"what": f"{path}:{arm}", **_side(jid, name, rows, summaries.get(arm) or {})}


def _side(jid: str, name: str, rows: Sequence[Mapping[str, Any]], summary: Mapping[str, Any]) -> dict[str, Any]:
    tasks: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        tasks.setdefault(str(row["task_name"]), []).append(row)
    scored = [row for row in rows if row["outcome"] in ("passed", "failed")]
    score = summary.get("score_ratio") if summary else None
    if score is None:
        score = fmean(row["outcome"] == "passed" for row in scored) if scored else None
    total = summary.get("total") or len(rows)
    return {"job": jid, "name": name, "score": score, "scored": len(scored), "total": total, "tasks": tasks}


def _tasks(sides: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    names = sorted({name for side in sides for name in side["tasks"]})
    rows = []
    for name in names:
        cells = [_cell(side["tasks"].get(name, ())) for side in sides]
        rows.append({"task": name, "cells": cells, **_change(cells)})
    order = {"flipped": 0, "moved": 1, "missing": 2, "same": 3}
    rows.sort(key=lambda row: (order[row["change"]], row["by"], row["task"]))
    return rows


def _cell(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    scored = [row for row in rows if row["outcome"] in ("passed", "failed")]
    rewards = [float((row.get("rewards") or {}).get("reward") or 0) for row in scored]
    return {
        "passed": sum(row["outcome"] == "passed" for row in scored),
        "scored": len(scored),
        "reward": round(fmean(rewards), 4) if rewards else None,
        "rollouts": [[safe(Path(str(row["rollout_dir"])).name), row["outcome"]] for row in rows[:50]],
    }


def _change(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Against the first side: solved more often than not, or no longer; `by` is the largest difference."""
    rates = [cell["passed"] / cell["scored"] if cell["scored"] else None for cell in cells]
    base = rates[0]
    moves = [rate - base for rate in rates[1:] if rate is not None and base is not None]
    by = max(moves, key=abs, default=0.0)
    if None in rates:
        known = [rate for rate in rates if rate is not None]
        if len(known) < 2 or base is None:
            return {"change": "missing", "by": 0.0}
    crossed = any(rate is not None and base is not None and (rate > 0.5) != (base > 0.5) for rate in rates[1:])
    return {"change": "flipped" if crossed else "moved" if by else "same", "by": round(by, 4)}
