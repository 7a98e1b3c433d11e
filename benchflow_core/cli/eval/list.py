"""`bench eval list`: the jobs of a folder."""

from __future__ import annotations

from pathlib import Path

import click

from benchflow_core.cli.ui import Ui

__all__ = ["list_jobs"]


@click.command("list")
@click.argument("jobs_dir", type=click.Path(), default="jobs")
@click.pass_obj
def list_jobs(ui: Ui, jobs_dir: str) -> None:
    """Finished jobs below a folder."""
    from benchflow_core.results.jobs import finished_jobs

    jobs = finished_jobs(Path(jobs_dir))

    def text() -> None:
        rows = [
            [
                j["job_name"],
                str(j.get("agent")),
                str(j.get("model") or ""),
                str(j.get("sandbox")),
                f"{j['passed']}/{j['scored']}",
                f"{j['scored']}/{j['total']}",
                j["score"],
            ]
            for j in jobs
        ]
        ui.table(["JOB", "AGENT", "MODEL", "SANDBOX", "PASSED", "COVERAGE", "SCORE"], rows)

    ui.emit(jobs, text)
