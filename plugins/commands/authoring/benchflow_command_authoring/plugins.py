"""`bench plugins show | doctor`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from benchflow_command_authoring.completion import one_of

if TYPE_CHECKING:
    from benchflow_command_authoring.doctor import Diagnosis
    from benchflow_core.contracts import CommandContext

__all__ = ["doctor", "show"]

_COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red", "skip": "dim"}
_SHOWN: Final = ("summary", "problem", "module", "aliases", "requires_dist", "functions")


@click.command()
@click.argument("name", shell_complete=one_of("plugin"))
@click.pass_obj
def show(ui: CommandContext, name: str) -> None:
    """Everything a plugin declares. NAME is a name, kind:name, distribution::name or a distribution."""
    from benchflow_command_authoring.describe import description

    described = [description(plugin) for plugin in ui.core().installed(name)]
    ui.emit(described, lambda: _show_descriptions(ui, described))
    if any(one["problem"] for one in described):
        raise SystemExit(1)


def _show_descriptions(ui: CommandContext, described: Sequence[dict[str, Any]]) -> None:
    for number, one in enumerate(described):
        if number:
            ui.out()
        ui.out(ui.style(f"{one['kind']} {one['name']}", "bold"))
        owner = {"distribution": f"{one['distribution']} {one['version']}"}
        lines = [*owner.items(), *((key, one[key]) for key in _SHOWN), *one["spec"].items()]
        shown = [(key, _plain(value)) for key, value in lines if value not in (None, "", [], {}, False)]
        width = max(len(key) for key, _ in shown)
        for key, value in shown:
            ui.out(f"  {key:<{width}}  {_one_line(value)}")


def _plain(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return "yes" if value is True else str(value)


def _one_line(text: str) -> str:
    return text.replace("\n", " ").replace("\t", " ")


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=one_of("plugin"))
@click.option("--timeout", default=10.0, show_default=True, metavar="SECONDS", help="For each check of a plugin.")
@click.pass_obj
def doctor(ui: CommandContext, names: tuple[str, ...], timeout: float) -> None:
    """Import plugins, look at what they need, and say how to get it.

    Exits with 1 when something is broken (fail); what is merely not usable here and now is a warning.
    """
    from benchflow_command_authoring.doctor import Doctor

    core = ui.core()
    checker = Doctor(core.env(), timeout, core.install_command)
    chosen = {
        (plugin.kind, plugin.name, plugin.distribution): plugin
        for name in names or (None,)
        for plugin in core.installed(name)
    }
    done: list[Diagnosis] = []
    for plugin in chosen.values():
        done.append(checker.diagnose(plugin))
        if not ui.json:
            _show_diagnosis(ui, done[-1])
    ui.emit([one.to_json() for one in done], lambda: _show_summary(ui, done))
    bad = ("fail", "warn") if core.strict() else ("fail",)
    if any(one.status in bad for one in done):
        raise SystemExit(1)


def _show_diagnosis(ui: CommandContext, one: Diagnosis) -> None:
    mark = ui.style(f"{one.status:<4}", _COLOURS[one.status])
    ui.out(f"{mark}  {_one_line(f'{one.kind}:{one.name}'):<28}  {_one_line(f'{one.distribution} {one.version}')}")
    for check in one.checks:
        if ui.verbose or check.status in ("warn", "fail"):
            detail = f": {check.detail}" if check.detail else ""
            ui.out(f"        {check.status:<4}  {_one_line(check.name + detail)}")
            if check.remedy and check.status != "ok":
                ui.out(f"              → {_one_line(check.remedy)}")


def _show_summary(ui: CommandContext, done: Sequence[Diagnosis]) -> None:
    counts = Counter[str](one.status for one in done)
    words = {"ok": "ok", "warn": "with warnings", "fail": "failing", "skip": "blocked"}
    summary = ", ".join(f"{counts[status]} {word}" for status, word in words.items() if counts[status])
    ui.out(f"{len(done)} plugins: {summary}." if done else "No plugins installed.")
