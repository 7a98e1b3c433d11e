"""`bench tasks init | check | certify | migrate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchflow_command_authoring.completion import one_of

if TYPE_CHECKING:
    from benchflow_core.contracts import CommandContext, Finding

__all__ = ["certify", "check", "init", "migrate"]

_LEVELS = ["schema", "structural", "runtime-capability", "live", "acceptance-live"]
_COLOURS = {"error": "red", "warning": "yellow", "info": "dim"}


@click.command("init")
@click.argument("name")
@click.option("--dir", "parent", type=click.Path(path_type=Path), default="tasks", show_default=True, help="Where.")
@click.option("--format", "format_", shell_complete=one_of("adapter"), help="Which task format.")
@click.option("--no-solution", "--no-oracle", is_flag=True, help="Leave the reference solution out.")
@click.option("--no-pytest", is_flag=True, help="Test with a shell script alone, without Python.")
@click.pass_obj
def init(ui: CommandContext, name: str, parent: Path, format_: str | None, no_solution: bool, no_pytest: bool) -> None:
    """Make a small task that works, to be changed into yours."""
    from benchflow_command_authoring.write_task import init_task

    target, scaffold = init_task(
        ui.core(), name, parent, format=format_, solution=not no_solution, pytest=not no_pytest
    )

    def text() -> None:
        ui.out(f"Made {target}:")
        for file in scaffold.files:
            ui.out(f"  {file}")
        for step in scaffold.next_steps:
            ui.note(step)
        ui.note(f"Then: bench tasks check {target}")

    ui.emit({"path": str(target), "files": list(scaffold.files)}, text)


@click.command("check")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), shell_complete=one_of("task"))
@click.option(
    "--level",
    type=click.Choice(_LEVELS),
    default="structural",
    show_default=True,
    help="How deep; each includes those before. Only live runs anything: the reference solution and an idle agent.",
)
@click.option("--sandbox", "-e", shell_complete=one_of("sandbox"), help="For the last two levels: where.")
@click.option("--allow-substitute", is_flag=True, help="For the last two levels: do without the task's image.")
@click.option("--allow-env", multiple=True, metavar="NAME", help="For live: a host variable the task may read.")
@click.pass_obj
def check(ui: CommandContext, /, paths: tuple[Path, ...], level: str, **settings: Any) -> None:
    """Look for mistakes in tasks: file, line, what is wrong and what to do."""
    from benchflow_command_authoring.check import LEVEL_ALIASES, check_task

    core = ui.core()
    level = LEVEL_ALIASES.get(level, level)
    chosen = [task for path in paths for task in core.find_tasks(path)]
    results = [(task, check_task(core, task, level, **settings)) for task in chosen]
    rows = [{"task": str(task), "level": level, "findings": [_to_json(f) for f in found]} for task, found in results]

    def text() -> None:
        for task, findings in results:
            _print_findings(ui, task, findings)

    ui.emit(rows, text)
    if any(finding.severity == "error" for _, findings in results for finding in findings):
        raise SystemExit(1)


@click.command("certify")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), shell_complete=one_of("task"))
@click.option("--sandbox", "-e", shell_complete=one_of("sandbox"), help="Where; without it the best-ranked.")
@click.option("--times", "-n", type=click.IntRange(1), default=3, show_default=True, help="Runs of the solution.")
@click.option("--allow-substitute", is_flag=True, help="Do without the task's image.")
@click.option("--allow-env", multiple=True, metavar="NAME", help="A host variable the task may read; repeatable.")
@click.pass_obj
def certify(ui: CommandContext, /, paths: tuple[Path, ...], times: int, **settings: Any) -> None:
    """Run the reference solution, an idle agent and cheats, and keep what was found beside each task.

    Certified is a task whose solution earns full marks each time while the others earn nothing. The report is
    TASK.certificate.json; jobs say when a task is no longer the one it speaks of. Exit code 1: a task failed.
    """
    from benchflow_command_authoring.certify import certify_task

    core = ui.core()
    chosen = [task for path in paths for task in core.find_tasks(path)]
    reports = [core.run(certify_task(core, task, times=times, **settings)) for task in chosen]

    def text() -> None:
        cells = [[r["task"], "✓" if r["certified"] else "✗", "; ".join(r["problems"]) or _pins(r)] for r in reports]
        ui.table(["TASK", "", "WHY"], cells)

    ui.emit(reports, text)
    if not all(report["certified"] for report in reports):
        raise SystemExit(1)


def _pins(report: Mapping[str, Any]) -> str:
    return f"not pinned by digest: {', '.join(report['unpinned'])}" if report["unpinned"] else ""


@click.command("migrate")
@click.argument("path", type=click.Path(path_type=Path), shell_complete=one_of("task"))
@click.option("--to", shell_complete=one_of("adapter"), help="The format to write; without it the preferred one.")
@click.option("--overwrite", is_flag=True, help="Replace files of that format that are there already.")
@click.option("--remove-legacy", is_flag=True, help="Remove the files that the new ones replace.")
@click.pass_obj
def migrate(ui: CommandContext, path: Path, to: str | None, overwrite: bool, remove_legacy: bool) -> None:
    """Write a task in another format, beside the old one."""
    from benchflow_command_authoring.write_task import migrate_task

    format_, migration = migrate_task(ui.core(), path, to=to, overwrite=overwrite, remove_superseded=remove_legacy)
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


def _to_json(finding: Finding) -> dict[str, Any]:
    return {
        "severity": finding.severity,
        "code": finding.code,
        "message": finding.message,
        "file": str(finding.file) if finding.file else None,
        "line": finding.line,
        "remedy": finding.remedy,
    }


def _print_findings(ui: CommandContext, task: Path, findings: Sequence[Finding]) -> None:
    for finding in [f for f in findings if f.severity != "info" or not ui.quiet]:
        place = f"{finding.file or task}" + (f":{finding.line}" if finding.line else "")
        word = ui.style(f"{finding.severity}:", _COLOURS[finding.severity])
        code = f" [{finding.code}]" if finding.code else ""
        ui.out(f"{place}: {word} {finding.message}.{code}")
        if finding.remedy:
            ui.out(f"    {finding.remedy}")
    counts = {severity: sum(f.severity == severity for f in findings) for severity in ("error", "warning")}
    verdict = ui.style("not ok", "red") if counts["error"] else ui.style("ok", "green")
    summary = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for word, count in counts.items() if count)
    ui.out(f"{task}: {verdict}{f' ({summary})' if summary else ''}")
