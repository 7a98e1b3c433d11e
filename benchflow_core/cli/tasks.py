"""`bench tasks`: make, check, identify and convert tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchflow_core.cli.completion import plugin_name, task_path
from benchflow_core.cli.from_plugins import PluginGroup
from benchflow_core.cli.ui import Ui

if TYPE_CHECKING:
    from benchflow_core.contracts.adapters import Finding

__all__ = ["tasks"]

_LEVELS = ["schema", "structural", "runtime-capability", "live", "acceptance-live"]


@click.group("tasks", cls=PluginGroup)
def tasks() -> None:
    """Make, check, identify and convert tasks."""


@tasks.command("init")
@click.argument("name")
@click.option("--dir", "parent", type=click.Path(path_type=Path), default="tasks", show_default=True, help="Where.")
@click.option("--format", "format_", shell_complete=plugin_name("adapter"), help="Which task format.")
@click.option("--no-solution", "--no-oracle", is_flag=True, help="Leave the reference solution out.")
@click.option("--no-pytest", is_flag=True, help="Test with a shell script alone, without Python.")
@click.pass_obj
def init(ui: Ui, name: str, parent: Path, format_: str | None, no_solution: bool, no_pytest: bool) -> None:
    """Make a small task that works, to be changed into yours."""
    from benchflow_core.task.author import init_task

    target, scaffold = init_task(name, parent, format=format_, solution=not no_solution, pytest=not no_pytest)

    def text() -> None:
        ui.out(f"Made {target}:")
        for file in scaffold.files:
            ui.out(f"  {file}")
        for step in scaffold.next_steps:
            ui.note(step)
        ui.note(f"Then: bench tasks check {target}")

    ui.emit({"path": str(target), "files": list(scaffold.files)}, text)


@tasks.command("check")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), shell_complete=task_path)
@click.option(
    "--level",
    type=click.Choice(_LEVELS),
    default="structural",
    show_default=True,
    help="How deep; each includes those before. Only live runs anything: the reference solution and an idle agent.",
)
@click.option("--sandbox", "-e", shell_complete=plugin_name("sandbox"), help="For the last two levels: where.")
@click.option("--allow-substitute", is_flag=True, help="For the last two levels: do without the task's image.")
@click.option("--allow-env", multiple=True, metavar="NAME", help="For live: a host variable the task may read.")
@click.pass_obj
def check(
    ui: Ui, paths: tuple[Path, ...], level: str, sandbox: str | None, allow_substitute: bool, allow_env: tuple[str, ...]
) -> None:
    """Look for mistakes in tasks: file, line, what is wrong and what to do."""
    from benchflow_core.task import find_tasks
    from benchflow_core.task.check import LEVEL_ALIASES

    level = LEVEL_ALIASES.get(level, level)
    chosen = [task for path in paths for task in find_tasks(path)]
    live = {"allow_substitute": allow_substitute, "allow_env": allow_env}
    results = [(task, _findings(task, level, sandbox, live)) for task in chosen]
    rows = [{"task": str(task), "level": level, "findings": [_to_json(f) for f in found]} for task, found in results]

    def text() -> None:
        for task, findings in results:
            _print_findings(ui, task, findings)

    ui.emit(rows, text)
    if any(finding.severity == "error" for _, findings in results for finding in findings):
        raise SystemExit(1)


@tasks.command("certify")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), shell_complete=task_path)
@click.option("--sandbox", "-e", shell_complete=plugin_name("sandbox"), help="Where; without it the best-ranked.")
@click.option("--times", "-n", type=click.IntRange(1), default=3, show_default=True, help="Runs of the solution.")
@click.option("--allow-substitute", is_flag=True, help="Do without the task's image.")
@click.option("--allow-env", multiple=True, metavar="NAME", help="A host variable the task may read; repeatable.")
@click.pass_obj
def certify(
    ui: Ui,
    paths: tuple[Path, ...],
    sandbox: str | None,
    times: int,
    allow_substitute: bool,
    allow_env: tuple[str, ...],
) -> None:
    """Run the reference solution, an idle agent and cheats, and keep what was found beside each task.

    Certified is a task whose solution earns full marks each time while the others earn nothing. The report is
    TASK.certificate.json; jobs say when a task is no longer the one it speaks of. Exit code 1: a task failed.
    """
    from benchflow_core.cli.running import run_async
    from benchflow_core.rollout.certify import certify_task
    from benchflow_core.task import find_tasks

    given: dict[str, Any] = {"sandbox": sandbox, "times": times, "allow_env": allow_env}
    reports = [
        run_async(certify_task(task, allow_substitute=allow_substitute, **given))
        for path in paths
        for task in find_tasks(path)
    ]

    def text() -> None:
        cells = [[r["task"], "✓" if r["certified"] else "✗", "; ".join(r["problems"]) or _pins(r)] for r in reports]
        ui.table(["TASK", "", "WHY"], cells)

    ui.emit(reports, text)
    if not all(report["certified"] for report in reports):
        raise SystemExit(1)


def _pins(report: dict[str, Any]) -> str:
    return f"not pinned by digest: {', '.join(report['unpinned'])}" if report["unpinned"] else ""


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


@tasks.command("migrate")
@click.argument("path", type=click.Path(path_type=Path), shell_complete=task_path)
@click.option("--to", shell_complete=plugin_name("adapter"), help="The format to write; without it the preferred one.")
@click.option("--overwrite", is_flag=True, help="Replace files of that format that are there already.")
@click.option("--remove-legacy", is_flag=True, help="Remove the files that the new ones replace.")
@click.pass_obj
def migrate(ui: Ui, path: Path, to: str | None, overwrite: bool, remove_legacy: bool) -> None:
    """Write a task in another format, beside the old one."""
    from benchflow_core.task.author import migrate_task

    format_, migration = migrate_task(path, to=to, overwrite=overwrite, remove_superseded=remove_legacy)
    data = {
        "path": str(path),
        "format": format_,
        "written": list(migration.files),
        "removed": list(migration.superseded) if remove_legacy else [],
        "losses": list(migration.losses),
    }

    def text() -> None:
        for file in migration.files:
            ui.out(f"wrote {path / file}")
        for file in data["removed"]:
            ui.out(f"removed {path / file}")
        for loss in migration.losses:
            ui.note(f"changed: {loss}")

    ui.emit(data, text)


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


def _findings(task: Path, level: str, sandbox: str | None, live: dict[str, Any]) -> list[Finding]:
    from benchflow_core.task.check import check_task, live_findings

    findings = check_task(task, level, sandbox=sandbox, allow_substitute=live["allow_substitute"])
    if level == "live" and not any(finding.severity == "error" for finding in findings):
        from benchflow_core.cli.running import run_async
        from benchflow_core.rollout import live_check

        findings = [*live_findings(run_async(live_check(task, sandbox=sandbox, **live)), task), *findings]
    return findings


def _to_json(finding: Finding) -> dict[str, Any]:
    return {
        "severity": finding.severity,
        "code": finding.code,
        "message": finding.message,
        "file": str(finding.file) if finding.file else None,
        "line": finding.line,
        "remedy": finding.remedy,
    }


def _print_findings(ui: Ui, task: Path, findings: list[Finding]) -> None:
    colours = {"error": "red", "warning": "yellow", "info": "dim"}
    shown = [f for f in findings if f.severity != "info" or not ui.quiet]
    for finding in shown:
        place = f"{finding.file or task}" + (f":{finding.line}" if finding.line else "")
        word = ui.style(f"{finding.severity}:", colours[finding.severity])
        code = f" [{finding.code}]" if finding.code else ""
        ui.out(f"{place}: {word} {finding.message}.{code}")
        if finding.remedy:
            ui.out(f"    {finding.remedy}")
    counts = {severity: sum(f.severity == severity for f in findings) for severity in ("error", "warning")}
    verdict = ui.style("not ok", "red") if counts["error"] else ui.style("ok", "green")
    said = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for word, count in counts.items() if count)
    ui.out(f"{task}: {verdict}{f' ({said})' if said else ''}")


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
