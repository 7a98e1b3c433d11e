"""`bench agent`: the installed agents."""

from __future__ import annotations

from typing import Any

import click

from benchflow_core.cli.completion import plugin_name
from benchflow_core.cli.lazy import LazyGroup
from benchflow_core.cli.ui import Ui

__all__ = ["agent", "list_agents"]


@click.group("agent", cls=LazyGroup)
def agent() -> None:
    """List and inspect the installed agents."""


@click.command("list")
@click.pass_obj
def list_agents(ui: Ui) -> None:
    """Every installed agent, with what it needs."""
    from benchflow_core.plugins import registry

    rows = [_describe(a) for a in registry().all("agent")]

    def text() -> None:
        ui.table(
            ["AGENT", "ALIASES", "PROTOCOL", "AUTH", "SUMMARY"],
            [[r["name"], ", ".join(r["aliases"]), r["protocol"], r["auth"], r["summary"]] for r in rows],
        )

    ui.emit(rows, text)


@click.command("show")
@click.argument("name", shell_complete=plugin_name("agent"))
@click.pass_obj
def show(ui: Ui, name: str) -> None:
    """Everything a plugin says about one agent."""
    from benchflow_core.plugins import registry

    data = _describe(registry().get("agent", name))

    def text() -> None:
        for key, value in data.items():
            shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            if shown:
                ui.out(f"{key.replace('_', ' '):<16}{shown}")

    ui.emit(data, text)


agent.add_command(list_agents)
agent.add_command(show)


def _describe(loaded: Any) -> dict[str, Any]:
    spec = loaded.spec
    return {
        "name": loaded.name,
        "aliases": list(loaded.aliases),
        "summary": spec.summary,
        "version": spec.version,
        "protocol": "ACP" if spec.prepare else "wrapper" if spec.wrap else "built in",
        "auth": _auth(spec),
        "purpose": spec.purpose,
        "default_model": spec.default_model or "",
        "wires": list(spec.wires),
        "layers": [layer.key for layer in spec.layers],
        "runtimes": [f"{r.name} {r.minimum}".strip() for r in spec.runtimes],
        "needs": sorted(spec.needs),
        "skill_paths": list(spec.skill_paths),
        "homepage": spec.homepage,
        "distribution": f"{loaded.distribution} {loaded.version}",
    }


def _auth(spec: Any) -> str:
    """Alternatives as people read them: `OPENAI_API_KEY or host login`."""
    if not spec.auth:
        return "none" if not spec.wires else "inferred from model"
    return " or ".join(a.hint or " + ".join(a.env) or a.name for a in spec.auth)
