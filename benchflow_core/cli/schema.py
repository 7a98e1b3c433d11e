"""`bench schema`: the published shape of a result file."""

from __future__ import annotations

import click

from benchflow_core.cli.ui import Ui
from benchflow_core.errors import UsageError

__all__ = ["schema"]


@click.command("schema")
@click.argument("name", required=False)
@click.pass_obj
def schema(ui: Ui, name: str | None) -> None:
    """Print the JSON Schema of a file that results consist of; without a name, the names."""
    from benchflow_core.results.files import to_json_text
    from benchflow_core.results.schemas import SCHEMAS, json_schema

    if name is None:
        ui.emit(sorted(SCHEMAS), lambda: ui.out("\n".join(sorted(SCHEMAS))))
        return
    if name not in SCHEMAS:
        raise UsageError(f"there is no schema '{name}'.", remedy=f"Known: {', '.join(sorted(SCHEMAS))}.")
    ui.emit(json_schema(name), lambda: ui.out(to_json_text(json_schema(name)).rstrip()))
