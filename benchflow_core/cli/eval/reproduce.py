"""`bench eval reproduce`: repeat a rollout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchflow_core.cli.ui import Ui

if TYPE_CHECKING:
    from benchflow_core.evaluation import Evaluation

__all__ = ["reproduce"]


@click.command("reproduce")
@click.argument("rollout", type=click.Path(exists=True, file_okay=False))
@click.option("-o", "--jobs-dir", type=click.Path(), default="jobs", show_default=True, help="Where results go.")
@click.option("--allow-drift", is_flag=True, help="Run although core, plugins or task differ; recorded in the result.")
@click.pass_obj
def reproduce(ui: Ui, rollout: str, jobs_dir: str, allow_drift: bool) -> None:
    """Repeat a rollout from its lock.json alone."""
    from benchflow_core.cli.running import run_job
    from benchflow_core.evaluation.reproduce import reproduction

    drift: list[str] = []

    def make(listener: Callable[..., None]) -> Evaluation:
        job, found = reproduction(
            Path(rollout), Path(jobs_dir), allow_drift=allow_drift, listener=listener, warn=ui.warn
        )
        drift.extend(found)
        for line in found:
            ui.warn(line)
        return job

    _, result = run_job(ui, make, more=lambda: {"drift": drift})
    if result.unscored:
        raise SystemExit(1)
