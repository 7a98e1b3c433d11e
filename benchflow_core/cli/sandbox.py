"""`bench sandbox`: the installed sandboxes, what runs in them, and a shell in a task's box."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from benchflow_core.cli.completion import plugin_name
from benchflow_core.cli.from_plugins import PluginGroup
from benchflow_core.cli.ui import Ui

if TYPE_CHECKING:
    from benchflow_core.plugins import Loaded

__all__ = ["cleanup", "sandbox"]


TABLE = {"shell": ("benchflow-command-authoring", "Open a shell in a task's box.")}


@click.group("sandbox", cls=PluginGroup, table=TABLE)
def sandbox() -> None:
    """List sandboxes and boxes, remove what was left behind, open a shell."""


@click.command("list")
@click.option("--boxes", is_flag=True, help="List what exists in each instead: live boxes and what was left behind.")
@click.pass_obj
def list_sandboxes(ui: Ui, boxes: bool) -> None:
    """Installed sandboxes, with what they can do here."""
    from benchflow_core.plugins import registry

    loaded = registry().all("sandbox")
    if boxes:
        _list_boxes(ui, loaded)
        return
    rows = [_describe(s) for s in loaded]

    def text() -> None:
        ui.table(
            ["SANDBOX", "AVAILABLE", "RANK", "SUMMARY", "NOTE"],
            [
                [
                    r["name"],
                    "yes" if r["available"] else "no",
                    str(r["rank"] if r["rank"] is not None else "-"),
                    r["summary"],
                    r["reason"],
                ]
                for r in rows
            ],
        )

    ui.emit(rows, text)


@click.command("cleanup")
@click.option("--dry-run", is_flag=True, help="Say what would be removed.")
@click.option("--sandbox", "only", shell_complete=plugin_name("sandbox"), help="Only in this sandbox.")
@click.pass_obj
def cleanup(ui: Ui, dry_run: bool, only: str | None) -> None:
    """Remove boxes, images and folders that a dead run left behind. What a live run uses is never touched."""
    from benchflow_core.cli.running import run_async
    from benchflow_core.plugins import registry
    from benchflow_core.rollout.leases import reap_dead

    chosen = [registry().get("sandbox", only)] if only else registry().all("sandbox")
    rows = run_async(reap_dead(chosen, dry_run=dry_run))

    def text() -> None:
        verb = "would remove" if dry_run else "removed"
        for row in rows:
            done = verb if row["error"] is None else "could not remove"
            why = f": {row['error']}" if row["error"] else ""
            ui.out(f"{done} {row['sandbox']} {row['kind']} {row['id']}{why}")
        if not rows:
            ui.out("Nothing was left behind.")

    ui.emit(rows, text)
    if any(row["error"] for row in rows):
        raise SystemExit(1)


sandbox.add_command(list_sandboxes)
sandbox.add_command(cleanup)


def _describe(loaded: Loaded) -> dict[str, Any]:
    from benchflow_core.contracts import Availability
    from benchflow_core.errors import PluginFailed
    from benchflow_core.rollout.choose import sandbox_capabilities

    found, capabilities = loaded.spec.available(), frozenset[str]()
    try:
        capabilities = sandbox_capabilities(loaded) if found.ok else capabilities
    except PluginFailed as error:
        found = Availability(False, error.message)
    return {
        "name": loaded.name,
        "available": found.ok,
        "reason": found.reason,
        "remedy": found.remedy,
        "rank": loaded.spec.default_rank,
        "summary": loaded.spec.summary,
        "capabilities": sorted(capabilities),
        "threat_model": loaded.spec.threat_model,
        "distribution": f"{loaded.distribution} {loaded.version}",
    }


def _list_boxes(ui: Ui, loaded: list[Loaded]) -> None:
    from benchflow_core.cli.running import run_async
    from benchflow_core.rollout.leases import all_leases

    rows, failures = run_async(all_leases(loaded))

    def text() -> None:
        ui.table(
            ["SANDBOX", "KIND", "ID", "OWNER", "JOB"],
            [
                [
                    r["sandbox"],
                    r["kind"],
                    r["id"],
                    {True: "alive", False: "dead", None: "unknown"}[r["owner_alive"]],
                    r["labels"].get("job", ""),
                ]
                for r in rows
            ],
        )

    ui.emit(rows, text)
    for error in failures:
        ui.error(" ".join(filter(None, [error.message, error.remedy])))
    if failures:
        raise SystemExit(1)
