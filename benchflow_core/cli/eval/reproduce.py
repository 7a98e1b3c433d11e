"""`bench eval reproduce`: repeat a rollout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchflow_core.cli.eval.create import job_json
from benchflow_core.cli.ui import Ui

if TYPE_CHECKING:
    from benchflow_core.evaluation import EvaluationResult

__all__ = ["reproduce"]


@click.command("reproduce")
@click.argument("rollout", type=click.Path(exists=True, file_okay=False))
@click.option("-o", "--jobs-dir", type=click.Path(), default="jobs", show_default=True, help="Where results go.")
@click.option("--allow-drift", is_flag=True, help="Run although core, plugins or task differ; recorded in the result.")
@click.pass_obj
def reproduce(ui: Ui, rollout: str, jobs_dir: str, allow_drift: bool) -> None:
    """Repeat a rollout from its lock.json alone."""
    from benchflow_core.cli.progress import Progress
    from benchflow_core.cli.running import run_async
    from benchflow_core.evaluation.reproduce import reproduction

    progress = Progress(ui)
    job, drift = reproduction(
        Path(rollout), Path(jobs_dir), allow_drift=allow_drift, listener=progress.hear, warn=ui.warn
    )
    for line in drift:
        ui.warn(line)
    result: EvaluationResult = run_async(job.run())
    ui.emit({**job_json(job, result), "drift": drift}, lambda: progress.finish(result, job.results))
    if result.unscored:
        raise SystemExit(1)
