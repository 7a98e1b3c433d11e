"""`bench eval list`: the jobs of a folder."""

from __future__ import annotations

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
    from benchflow_core.evaluation.metrics import index_cache, job_result
    from benchflow_core.results.jobs import stored_jobs

    rows: list[tuple[str, dict[str, Any]]] = []
    for job in stored_jobs(Path(jobs_dir), index_cache()):
        result = job_result(job)
        first = job.rows[0] if job.rows else {}
        who = {key: job.about.get(key, first.get(key)) for key in ("agent", "model", "sandbox")}
        if result.arms:
            who["agent"] = f"{len(result.arms)} arms"
        began = min((row["started_at"] or "" for row in job.rows), default="")
        status = {"status": "finished" if job.finished else "unfinished", "started_at": began or None}
        data = result.to_json({**{k: v for k, v in job.about.items() if k not in _COUNTED}, **who, **status})
        rows.append((began or job.name, {**data, "job_dir": str(job.path)}))
    jobs = [data for _, data in sorted(rows, key=lambda row: row[0])]

    def text() -> None:
        table = [
            [
                j["job_name"],
                str(j["agent"] or ""),
                str(j["model"] or ""),
                str(j["sandbox"] or ""),
                f"{j['passed']}/{j['scored']}",
                f"{j['scored']}/{j['total']}",
                j["score"] if j["scored"] else "–",
                "" if j["status"] == "finished" else j["status"],
            ]
            for j in jobs
        ]
        if table:
            ui.table(["JOB", "AGENT", "MODEL", "SANDBOX", "PASSED", "COVERAGE", "SCORE", ""], table)
        else:
            ui.note(f"no job in {jobs_dir}")

    ui.emit(jobs, text)


_COUNTED = ("arms", "strata", "total_tool_calls", "total_skill_invocations", "avg_skill_invocations")
"""Of an older summary: counted anew, and absent where there is nothing to count."""
