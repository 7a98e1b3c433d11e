"""The document of a job: its summary, what it ran with, and its rollouts column by column."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchflow_command_view.catalogue import safe
from benchflow_command_view.clock import seconds_of
from benchflow_core.contracts import JobResults

__all__ = ["job_document", "mark_of"]

Row = Mapping[str, Any]
_TEXTS = ("task", "rollout", "name", "side", "agent", "model", "sandbox", "outcome", "reason", "error", "flags")
_NUMBERS = ("trial", "attempt", "reward", "seconds", "cost", "tokens", "tools", "started")
_DIGITS = {"seconds": 3, "cost": 6, "reward": 6, "started": 0}


def mark_of(folder: Path) -> tuple[Any, ...]:
    """Changes with every rollout that is added, taken away or scored again: a job that is done keeps it."""
    marks: list[Any] = []
    for path in (folder, *(folder / name for name in ("summary.json", "job.json", "journal.jsonl"))):
        try:
            state = os.stat(path)  # noqa: PTH116
            marks.append((state.st_mtime_ns, state.st_size if path != folder else 0))
        except OSError:
            marks.append(None)
    return tuple(marks)


def job_document(jid: str, job: JobResults, only: frozenset[str] | None) -> dict[str, Any]:
    """`rows` and `columns` hold the table: a text is a number into the list of texts of its column."""
    rows = [_row(row) for row in job.rows if only is None or Path(str(row["rollout_dir"])).name in only]
    rows += [row for row in _without_result(job) if only is None or row["name"] in only]
    rows.sort(key=_order)
    started = min((row["started"] for row in rows if row["started"] is not None), default=None)
    about = job.summary
    return {
        "id": jid,
        "name": job.name,
        "path": str(job.path),
        "finished": job.finished,
        "running": job.running,
        "started": started,
        "summary": {**about, "elapsed_sec": _elapsed(job, rows, started)},
        "facts": _facts(job.rows, job.settings),
        "settings": _settings(job.settings),
        "rows": len(rows),
        "tasks": len({row["task"] for row in rows}),
        "counts": dict(Counter(row["outcome"] for row in rows)),
        "columns": {
            **{name: _texts(row[name] for row in rows) for name in _TEXTS},
            **{name: [_rounded(name, row[name]) for row in rows] for name in _NUMBERS},
        },
    }


def _elapsed(job: JobResults, rows: Sequence[Row], started: float | None) -> Any:
    """By the clock: until the job has said it itself, from its first rollout to its last, or to now."""
    if job.finished or started is None:
        return job.summary.get("elapsed_sec") if job.finished else None
    ends = [row["started"] + (_rounded("seconds", row["seconds"]) or 0) for row in rows if row["started"] is not None]
    return round((time.time() if job.running else max(ends)) - started, 3)


def _order(row: Row) -> tuple[Any, ...]:
    return str(row["task"]), str(row["side"] or ""), _rounded("trial", row["trial"]) or 0, str(row["name"])


def _row(row: Row) -> dict[str, Any]:
    used, rewards = row.get("agent_result") or {}, row.get("rewards") or {}
    info = row.get("error_info") or row.get("verifier_error_info") or {}
    folder = Path(str(row["rollout_dir"])).name
    return {
        "task": row["task_name"],
        "rollout": safe(folder),
        "name": folder,
        "side": row.get("side"),
        "agent": row.get("agent"),
        "model": row.get("model"),
        "sandbox": row.get("sandbox"),
        "outcome": row["outcome"],
        "reason": f"{info.get('kind')}:{info.get('code')}" if info else "",
        "error": row.get("error") or row.get("verifier_error") or "",
        "flags": ", ".join([*map(str, row.get("flags") or ()), *_contested(row)]),
        "trial": row.get("trial"),
        "attempt": row.get("attempt"),
        "reward": rewards.get("reward"),
        "seconds": (row.get("timing") or {}).get("total"),
        "cost": used.get("cost_usd"),
        "tokens": used.get("total_tokens"),
        "tools": row.get("n_tool_calls"),
        "started": seconds_of(row.get("started_at")),
    }


def _contested(row: Row) -> list[str]:
    scores = row.get("contested")
    return [] if not isinstance(scores, Mapping) else ["contested, settled" if scores.get("settled") else "contested"]


def _without_result(job: JobResults) -> Iterable[dict[str, Any]]:
    """Rollouts that run, wait, or were never begun."""
    have = {Path(str(row["rollout_dir"])).name for row in job.rows}
    begun = set(job.unfinished)
    empty = dict.fromkeys((*_TEXTS, *_NUMBERS))
    sides = {row.get("side") for row in job.rows}
    alone = sides.pop() if len(sides) == 1 else None
    planned = {str(item.get("rollout")): item for item in job.planned}
    for name in [*planned, *(name for name in job.unfinished if name not in planned)]:
        if name in have:
            continue
        item = planned.get(name, {})
        task = Path(str(item.get("task") or "")).name or re.sub(r"__[0-9a-f]{8,}$", "", name)
        state = (
            ("running" if job.running else "unfinished") if name in begun else "waiting" if job.running else "not run"
        )
        where = {"task": task, "rollout": safe(name), "name": name, "trial": item.get("trial")}
        yield {
            **empty,
            **where,
            "side": item.get("arm") or alone,
            "outcome": state,
            "reason": "",
            "error": "",
            "flags": "",
        }


def _texts(values: Iterable[Any]) -> dict[str, list[Any]]:
    known: dict[str, int] = {}
    numbers = [known.setdefault(str(value) if value is not None else "", len(known)) for value in values]
    return {"texts": list(known), "rows": numbers}


def _rounded(name: str, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    digits = _DIGITS.get(name)
    return value if digits is None or isinstance(value, int) else round(value, digits)


def _facts(rows: Sequence[Row], settings: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """What the rollouts ran with, and how many with each; a row names the agent and model of its first role only."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        dataset = " ".join(str(row[key]) for key in ("dataset_name", "dataset_version") if row.get(key))
        values = {"agent": row.get("agent"), "model": row.get("model"), "sandbox": row.get("sandbox")}
        values |= {"dataset": dataset, "core": row.get("core_version"), "plugins": row.get("plugins")}
        for name, value in values.items():
            if value:
                found.setdefault(name, Counter())[str(value)] += 1
    for role in _roles(settings.get("scenes")) if rows else ():
        for name in ("agent", "model"):
            if role.get(name):
                found.setdefault(name, Counter()).setdefault(str(role[name]), len(rows))
    for name in ("agent", "model", "sandbox"):
        if name not in found and isinstance(settings.get(name), str) and not settings.get("matrix"):
            found[name] = Counter({settings[name]: 0})  # none is done yet: what was asked for
    plugins: Counter[str] = Counter()
    for together, count in found.pop("plugins", Counter()).items():
        plugins.update(dict.fromkeys(together.split(), count))
    return {
        **{name: dict(counts.most_common(20)) for name, counts in found.items()},
        "plugins": dict(sorted(plugins.items())),
    }


def _roles(scenes: Any) -> Iterable[Mapping[str, Any]]:
    for scene in scenes if isinstance(scenes, list) else ():
        roles = scene.get("roles") if isinstance(scene, Mapping) else None
        yield from (role for role in roles if isinstance(role, Mapping)) if isinstance(roles, list) else ()


def _settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those that were set to something."""
    return {name: value for name, value in settings.items() if value not in (None, [], {}, "", False)}
