"""How `--dry-run` shows a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchflow_core.cli.ui import Ui

__all__ = ["show_plan"]

_ROWS = 40


def show_plan(ui: Ui, report: Mapping[str, Any]) -> None:
    """A row per task and arm, then what is in the way."""
    _heading(ui, report)
    rows = report["plan"]
    ui.table(["TASK", "ARM", "AGENT", "MODEL", "SANDBOX", "ISOLATION", "STATUS"], [_cells(row) for row in rows[:_ROWS]])
    if len(rows) > _ROWS:
        ui.out(f"… and {len(rows) - _ROWS} more; --json shows all")
    for model in report["models"]:
        state = "refused" if model["problem"] else "answers"
        ui.out(f"model {model['model']}: {state} ({model.get('gateway', 'no gateway')})")
    for one in report["host_variables"]:
        leave = "allowed" if one["allowed"] else f"not allowed; --allow-env {one['name']}"
        state = "" if one["set"] else ", not set"
        ui.out(f"host variable {one['name']} ({len(one['tasks'])} tasks): {leave}{state}")
    for line in dict.fromkeys(notice for row in rows for notice in row.get("notices") or ()):
        ui.out(f"note: {line}")
    for line in report["warnings"]:
        ui.warn(line)
    for line in report["problems"]:
        ui.out(f"✗ {line}")
    ui.out("Nothing was started." if report["problems"] else "Ready. Nothing was started.")


def _heading(ui: Ui, report: Mapping[str, Any]) -> None:
    arms = f" × {len(report['arms'])} arms" if report["arms"] else ""
    trials = f" × {report['trials']} trials" if report["trials"] > 1 else ""
    ui.out(f"{report['tasks']} tasks of {report['where']}{arms}{trials}: {report['rollouts']} rollouts")
    if report["dataset"]:
        ui.out(f"dataset {report['dataset']['name']}@{report['dataset']['version']}, every digest verified")
    if report["source"]:
        ui.out(f"from {report['source']['uri']} at {report['source']['resolved_sha']}")


def _cells(row: Mapping[str, Any]) -> list[str]:
    roles = row.get("roles") or []
    agents = ", ".join(dict.fromkeys(role["agent"] for role in roles))
    models = ", ".join(dict.fromkeys(role["model"] for role in roles if role["model"]))
    status = row["problem"]["code"] if row["problem"] else "ready"
    return [
        row["task"],
        row["arm"] or "",
        agents,
        models,
        row.get("sandbox") or "",
        row.get("isolation") or "",
        status,
    ]
