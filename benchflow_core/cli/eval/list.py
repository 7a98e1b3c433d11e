"""`bench eval list`: the jobs of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from benchflow_core.cli.ui import Ui

__all__ = ["list_jobs"]


@click.command("list")
@click.argument("jobs_dir", type=click.Path(), default="jobs")
@click.pass_obj
def list_jobs(ui: Ui, jobs_dir: str) -> None:
    """Jobs below a folder, oldest first, as their rollouts say now."""
    from benchflow_core.evaluation.metrics import index_cache, job_result, job_team
    from benchflow_core.results.jobs import stored_jobs

    rows: list[tuple[str, dict[str, Any]]] = []
    for job in stored_jobs(Path(jobs_dir), index_cache()):
        result = job_result(job)
        began = min((row["started_at"] or "" for row in job.rows), default="")
        status = {"status": "finished" if job.finished else "unfinished", "started_at": began or None}
        data = result.to_json({**{k: v for k, v in job.about.items() if k not in _COUNTED}, **job_team(job), **status})
        rows.append((began or job.name, {**data, "job_dir": str(job.path)}))
    jobs = [data for _, data in sorted(rows, key=lambda row: row[0])]

    def text() -> None:
        if table := [line for job in jobs for line in _lines(job)]:
            ui.table(["JOB", "AGENT", "MODEL", "SANDBOX", "PASSED", "COVERAGE", "SCORE", ""], table)
        else:
            ui.note(f"no job in {jobs_dir}")

    ui.emit(jobs, text)


def _lines(job: dict[str, Any]) -> Iterator[list[str]]:
    """A line for the job, and with several arms one for the score of each."""
    arms = job.get("arms") or {}
    status = "" if job["status"] == "finished" else job["status"]
    who = [str(job[key] or "") for key in ("agent", "model", "sandbox")]
    yield [job["job_name"], *who, *(["", _coverage(job), ""] if arms else _score(job)), status]
    for name, arm in arms.items():
        yield [f"  {name}", "", "", "", *_score(arm), ""]


def _score(one: dict[str, Any]) -> list[str]:
    return [f"{one['passed']}/{one['scored']}", _coverage(one), one["score"] if one["scored"] else "–"]


def _coverage(one: dict[str, Any]) -> str:
    return f"{one['scored']}/{one['total']}"


_COUNTED = ("arms", "strata", "total_tool_calls", "total_skill_invocations", "avg_skill_invocations")
"""Of an older summary: counted anew, and absent where there is nothing to count."""
