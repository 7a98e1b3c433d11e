"""`bench eval attach`: watch a job that runs elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from benchflow_core.cli.ui import Ui

__all__ = ["attach"]


@click.command("attach")
@click.argument("job", type=click.Path(exists=True, file_okay=False))
@click.pass_obj
def attach(ui: Ui, job: str) -> None:
    """Show a job that runs in the background, until it ends. Ctrl-C only stops watching.

    Exit codes are those of the job: 0 when every rollout was scored.
    """
    from benchflow_core.cli.progress import Progress
    from benchflow_core.evaluation.jobfile import JobRecord
    from benchflow_core.evaluation.joblock import owner_of
    from benchflow_core.evaluation.journal import follow

    job_dir = Path(job)
    JobRecord.read(job_dir)
    with Progress(ui) as progress:
        try:
            for kind, data in follow(job_dir, lambda: owner_of(job_dir) is None, lambda: _show_live(job_dir, progress)):
                progress.hear(kind, data)
        except KeyboardInterrupt:
            progress.close()
            ui.note(f"The job goes on. Stop it with: bench eval stop {job}")
            return
    _report(ui, job_dir, progress)


def _show_live(job_dir: Path, progress: Any) -> None:
    from benchflow_core.evaluation.live import LIVE
    from benchflow_core.results.files import read_json

    try:
        progress.hear("live", read_json(job_dir / LIVE))
    except (OSError, ValueError):
        return


def _report(ui: Ui, job_dir: Path, progress: Any) -> None:
    from benchflow_core.evaluation.job import summary_of

    result, summary = summary_of(job_dir)
    ui.emit(summary, lambda: progress.finish(result))
    if result.unscored:
        raise SystemExit(1)
