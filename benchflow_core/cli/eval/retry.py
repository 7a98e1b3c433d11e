"""`bench eval retry`: run once more what could not be scored."""

from __future__ import annotations

from typing import Any

import click

from benchflow_core.cli.eval.again import again_options, go_on
from benchflow_core.cli.ui import Ui
from benchflow_core.errors import UsageError

__all__ = ["retry"]


@click.command("retry")
@again_options
@click.option("--errors", is_flag=True, help="Those that ended in an error, of whatever type, without a score.")
@click.pass_obj
def retry(ui: Ui, /, errors: bool, **given: Any) -> None:
    """Run once more what a job could not score, and what it has not finished. Scored rollouts are never run again.

    The earlier attempts are kept below attempts/, with their cost.
    """
    if not errors:
        raise UsageError("say what to run again.", remedy="Add --errors: those that ended without a score.")
    go_on(ui, given, again="errors")
