"""`bench eval extend`: more trials for a job."""

from __future__ import annotations

from typing import Any

import click

from benchflow_core.cli.eval.again import again_options, go_on
from benchflow_core.cli.ui import Ui

__all__ = ["extend"]


@click.command("extend")
@again_options
@click.option("--trials", type=click.IntRange(1), required=True, help="Trials per task, in all.")
@click.pass_obj
def extend(ui: Ui, /, trials: int, **given: Any) -> None:
    """Bring a job up to this many trials per task, with the same settings, and finish what is not finished."""
    go_on(ui, given, trials=trials)
