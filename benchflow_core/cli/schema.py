"""`bench schema`: the published shape of a file."""

from __future__ import annotations

from typing import Any

import click

from benchflow_core.cli.ui import Ui
from benchflow_core.errors import UsageError

__all__ = ["published", "schema"]

_JOB = "job"
"""What a user writes; the others are what we write."""


def published() -> dict[str, dict[str, Any]]:
    """Every JSON Schema by its name."""
    from benchflow_core.results.schemas import SCHEMAS, json_schema
    from benchflow_core.settings.job_file import job_schema

    return {_JOB: job_schema(), **{name: json_schema(name) for name in SCHEMAS}}


@click.command("schema")
@click.argument("name", required=False)
@click.pass_obj
def schema(ui: Ui, name: str | None) -> None:
    """Print the JSON Schema of a job file or of a file that results consist of; without a name, the names.

    \b
    bench schema job > job.schema.json
    """
    from benchflow_core.results.files import to_json_text

    found = published()
    if name is None:
        ui.emit(sorted(found), lambda: ui.out("\n".join(sorted(found))))
        return
    if name not in found:
        raise UsageError(f"there is no schema '{name}'.", remedy=f"Known: {', '.join(sorted(found))}.")
    ui.emit(found[name], lambda: ui.out(to_json_text(found[name]).rstrip()))
