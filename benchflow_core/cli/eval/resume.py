"""`bench eval resume`: go on with a job."""

from __future__ import annotations

from typing import Any

import click

from benchflow_core.cli.eval.again import again_options, go_on
from benchflow_core.cli.ui import Ui

__all__ = ["resume"]


@click.command("resume")
@again_options
@click.pass_obj
def resume(ui: Ui, /, **given: Any) -> None:
    """Run what a job has not finished: after Ctrl-C, a budget, a crash or kill -9.

    Finished rollouts are neither lost nor repeated. Refused when core, plugins, agents or tasks changed meanwhile.
    """
    go_on(ui, given)
