"""`bench tasks`: identify and list tasks. The commands for authors come with a package."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from benchflow_core.cli.completion import task_path
from benchflow_core.cli.from_plugins import PluginGroup
from benchflow_core.cli.lazy import Lazy
from benchflow_core.cli.ui import Ui

__all__ = ["tasks"]

_AUTHORING: Final = "benchflow-command-authoring"
TABLE: Final[dict[str, Lazy]] = {
    "init": (_AUTHORING, "Make a small task that works, to be changed into yours."),
    "check": (_AUTHORING, "Look for mistakes in tasks: file, line, what to do."),
    "certify": (_AUTHORING, "Run the reference solution, an idle agent and cheats."),
    "migrate": (_AUTHORING, "Write a task in another format, beside the old one."),
}


@click.group("tasks", cls=PluginGroup, table=TABLE)
def tasks() -> None:
    """Make, check, identify and convert tasks."""


@tasks.command("digest")
@click.argument("path", type=click.Path(path_type=Path), shell_complete=task_path)
@click.pass_obj
def digest(ui: Ui, path: Path) -> None:
    """Print what identifies a task's content; for a folder of tasks, one line each."""
    from benchflow_core.task import find_tasks, task_digest

    found = find_tasks(path)
    rows = [{"task": task.resolve().name, "path": str(task), "digest": task_digest(task)} for task in found]
    alone = found == [path]

    def text() -> None:
        for row in rows:
            ui.out(row["digest"] if alone else f"{row['task']} {row['digest']}")

    ui.emit(rows[0] if alone else rows, text)


@tasks.command("list")
@click.argument("path", type=click.Path(path_type=Path), shell_complete=task_path)
@click.pass_obj
def list_tasks(ui: Ui, path: Path) -> None:
    """Show the tasks of a folder."""
    from benchflow_core.task import find_tasks

    rows = [_describe(task) for task in find_tasks(path)]

    def text() -> None:
        columns = ["TASK", "FORMAT", "STEPS", "SOLUTION", "DESCRIPTION"]
        ui.table(columns, [[r["name"], r["format"], str(r["steps"]), r["solution"], r["description"]] for r in rows])

    ui.emit(rows, text)


def _describe(path: Path) -> dict[str, Any]:
    from benchflow_core.errors import TaskError
    from benchflow_core.task import load_task

    row = {"path": str(path), "name": path.resolve().name, "format": "", "steps": 0, "solution": "", "error": None}
    try:
        task = load_task(path)
    except TaskError as error:
        return {**row, "format": "broken", "description": str(error), "error": error.to_json()}
    solved = all(step.solution for step in task.steps) if task.steps else task.solution is not None
    first = next((line for line in task.instruction.split("\n") if line.strip()), "")
    described = task.description or (first if len(first) <= 80 else first[:79] + "…")
    found = {"name": task.name, "format": task.format, "steps": len(task.steps), "solution": "yes" if solved else "no"}
    return {**row, **found, "description": described}
