"""`bench plugins`: what is installed, whether it works, and how to make it work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from benchflow_core.cli.from_plugins import PluginGroup
from benchflow_core.cli.ui import Ui, printable

if TYPE_CHECKING:
    from benchflow_core.plugins.doctor import Diagnosis
    from benchflow_core.plugins.survey import Surveyed

__all__ = ["plugins"]

plugins = PluginGroup(
    "plugins",
    table={"new": ("benchflow_core.scaffold.command:new", "Create a plugin package that builds and passes its tests.")},
    help="List, inspect, diagnose and create plugins.",
)


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from benchflow_core.plugins import registry

    plugins = [plugin for group in registry().index.plugins for plugin in registry().plugins(group)]
    names = {name for plugin in plugins for name in (*plugin.names, plugin.distribution.name)}
    return sorted(name for name in names if name.startswith(incomplete))


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
    from benchflow_core.plugins import survey as surveys

    ui = ctx.ensure_object(Ui)
    if requirements:
        lines = surveys.requirements(registry(), kind)
        ui.emit(lines, lambda: ui.out("\n".join(lines)))
        return
    found = surveys.survey(registry(), kind, reserved=_own_commands(ctx))
    ui.emit([one.to_json() for one in found], lambda: _show_list(ui, found))
    if registry().policy.strict and any(one.status in ("failed", "duplicate") or one.warnings for one in found):
        ctx.exit(1)


def _own_commands(ctx: click.Context) -> set[str]:
    root = ctx.find_root().command
    return root.reserved() if isinstance(root, PluginGroup) else set()


def _show_list(ui: Ui, found: Sequence[Surveyed]) -> None:
    if not found:
        ui.out("No plugins installed.")
        return
    rows = [(one.kind, one.name, one.version, one.distribution, one.status, _provides(one)) for one in found]
    ui.table(("KIND", "NAME", "VERSION", "DISTRIBUTION", "STATUS", "PROVIDES, OR WHY NOT"), rows)
    for one in found:
        for warning in one.warnings:
            ui.warn(f"{one.kind}:{one.name} of {one.distribution} {one.version}: {warning}")


def _provides(one: Surveyed) -> str:
    aliases = f" (also: {', '.join(one.aliases)})" if one.aliases else ""
    return (one.reason or one.summary) + aliases


@plugins.command()
@click.argument("name", shell_complete=_complete)
@click.pass_context
def show(ctx: click.Context, name: str) -> None:
    """Everything a plugin declares. NAME is a name, kind:name, distribution::name or a distribution."""
    from benchflow_core.plugins import registry
    from benchflow_core.plugins.describe import description, problem_description
    from benchflow_core.plugins.survey import select

    ui = ctx.ensure_object(Ui)
    found, broken = select(registry(), name)
    described = [description(registry(), plugin) for plugin in found] + [problem_description(one) for one in broken]
    ui.emit(described, lambda: _show_descriptions(ui, described))
    if any(one["problem"] for one in described):
        ctx.exit(1)


def _show_descriptions(ui: Ui, described: Sequence[dict[str, Any]]) -> None:
    for number, one in enumerate(described):
        if number:
            ui.out()
        ui.out(ui.style(f"{one['kind']} {one['name']}", "bold"))
        owner = {"distribution": f"{one['distribution']} {one['version']}"}
        rest = {key: one[key] for key in ("summary", "problem", "module", "aliases", "requires_dist", "functions")}
        lines = [*owner.items(), *rest.items(), *one["spec"].items()]
        shown = [(key, _plain(value)) for key, value in lines if value not in (None, "", [], {}, False)]
        width = max(len(key) for key, _ in shown)
        for key, value in shown:
            ui.out(f"  {key:<{width}}  {printable(value)}")


def _plain(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    if isinstance(value, list | dict):
        import json

        return json.dumps(value, ensure_ascii=False)
    return "yes" if value is True else str(value)


@plugins.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_complete)
@click.option("--timeout", default=10.0, show_default=True, metavar="SECONDS", help="For each check of a plugin.")
@click.pass_context
def doctor(ctx: click.Context, names: tuple[str, ...], timeout: float) -> None:
    """Import plugins, look at what they need, and say how to get it.

    Exits with 1 when something is broken (fail); what is merely not usable here and now is a warning.
    """
    from benchflow_core.dotenv import user_env
    from benchflow_core.plugins import registry
    from benchflow_core.plugins.doctor import diagnose, diagnose_problem
    from benchflow_core.plugins.survey import select

    ui = ctx.ensure_object(Ui)
    chosen = [select(registry(), name) for name in names or (None,)]
    problems = dict.fromkeys(problem for _, broken in chosen for problem in broken)
    plugins = dict.fromkeys(plugin for found, _ in chosen for plugin in found)
    env = user_env()
    done: list[Diagnosis] = []
    for diagnosis in chain(
        map(diagnose_problem, problems), (diagnose(registry(), one, env, timeout) for one in plugins)
    ):
        done.append(diagnosis)
        if not ui.json:
            _show_diagnosis(ui, diagnosis)
    ui.emit([one.to_json() for one in done], lambda: _show_summary(ui, done))
    bad = ("fail", "warn") if registry().policy.strict else ("fail",)
    if any(one.status in bad for one in done):
        ctx.exit(1)


_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red", "skip": "dim"}


def _show_diagnosis(ui: Ui, one: Diagnosis) -> None:
    mark = ui.style(f"{one.status:<4}", _COLOURS[one.status])
    ui.out(f"{mark}  {printable(f'{one.kind}:{one.name}'):<28}  {printable(f'{one.distribution} {one.version}')}")
    for check in one.checks:
        if ui.verbose or check.status in ("warn", "fail"):
            detail = f": {check.detail}" if check.detail else ""
            ui.out(f"        {check.status:<4}  {printable(check.name + detail)}")
            if check.remedy and check.status != "ok":
                ui.out(f"              → {printable(check.remedy)}")


def _show_summary(ui: Ui, done: Sequence[Diagnosis]) -> None:
    counts = Counter[str](one.status for one in done)
    words = {"ok": "ok", "warn": "with warnings", "fail": "failing", "skip": "blocked"}
    told = ", ".join(f"{counts[status]} {word}" for status, word in words.items() if counts[status])
    ui.out(f"{len(done)} plugins: {told}." if done else "No plugins installed.")
