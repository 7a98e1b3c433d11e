"""`bench plugins`: what is installed, and whether it works."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from benchflow_core.cli.from_plugins import PluginGroup
from benchflow_core.cli.ui import Ui

if TYPE_CHECKING:
    from benchflow_core.contracts.core import InstalledPlugin

__all__ = ["plugins"]

_AUTHORING = "benchflow-command-authoring"

plugins = PluginGroup(
    "plugins",
    table={
        "show": (_AUTHORING, "Everything a plugin declares."),
        "doctor": (_AUTHORING, "Import plugins, look at what they need, and say how to get it."),
        "new": (_AUTHORING, "Create a plugin package that builds and passes its tests."),
    },
    help="List, inspect, diagnose and create plugins.",
)


def _complete_kind(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from benchflow_core.hookspecs import GROUPS

    return [kind for kind in GROUPS if kind.startswith(incomplete)]


def _kind(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    from benchflow_core.hookspecs import GROUPS

    if value is not None and value not in GROUPS:
        raise click.BadParameter(f"{value!r} is not one of {', '.join(GROUPS)}.")
    return value


@plugins.command("list")
@click.option("--kind", metavar="KIND", callback=_kind, shell_complete=_complete_kind, help="Only this kind.")
@click.option("--requirements", is_flag=True, help="Print distribution==version lines instead; imports nothing.")
@click.pass_context
def list_plugins(ctx: click.Context, kind: str | None, requirements: bool) -> None:
    """Every installed plugin, and whether it works."""
    from benchflow_core.plugins import registry

    ui = ctx.ensure_object(Ui)
    if requirements:
        lines = registry().requirements(kind)
        ui.emit(lines, lambda: ui.out("\n".join(lines)))
        return
    from benchflow_core.plugins.survey import survey, to_json

    found = survey(registry(), kind=kind, reserved=_own_commands(ctx))
    ui.emit([to_json(one) for one in found], lambda: _show_list(ui, found))
    if registry().policy.strict and any(one.status in ("failed", "duplicate") or one.warnings for one in found):
        ctx.exit(1)


def _own_commands(ctx: click.Context) -> set[str]:
    root = ctx.find_root().command
    return root.reserved() if isinstance(root, PluginGroup) else set()


def _show_list(ui: Ui, found: Sequence[InstalledPlugin]) -> None:
    from benchflow_core.plugins.survey import text_of

    if not found:
        ui.out("No plugins installed.")
        return
    rows = [(one.kind, one.name, one.version, one.distribution, one.status, _provides(one)) for one in found]
    ui.table(("KIND", "NAME", "VERSION", "DISTRIBUTION", "STATUS", "PROVIDES, OR WHY NOT"), rows)
    for one in found:
        for warning in one.warnings:
            ui.warn(f"{one.kind}:{one.name} of {one.distribution} {one.version}: {text_of(warning)}")


def _provides(one: InstalledPlugin) -> str:
    aliases = f" (also: {', '.join(one.aliases)})" if one.aliases else ""
    return (one.reason or one.summary) + aliases
