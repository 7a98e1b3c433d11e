"""`bench agent`: the installed agents."""

from __future__ import annotations

from typing import Any

import click

from benchflow_core.cli.completion import plugin_name
from benchflow_core.cli.from_plugins import PluginGroup
from benchflow_core.cli.ui import Ui

__all__ = ["agent", "list_agents"]


TABLE = {"check": ("benchflow-command-authoring", "Install an agent here and try it on a local model.")}


@click.group("agent", cls=PluginGroup, table=TABLE)
def agent() -> None:
    """List, inspect and try the installed agents."""


@click.command("list")
@click.pass_obj
def list_agents(ui: Ui) -> None:
    """Every installed agent, with what it needs."""
    from benchflow_core.plugins import registry

    rows = sorted((_describe(a) for a in registry().all("agent")), key=lambda row: str(row["name"]))

    def text() -> None:
        ui.table(
            ["AGENT", "PROTOCOL", "AUTH", "ALIASES", "SUMMARY"],
            [[r["name"], r["protocol"], r["auth"], ", ".join(r["aliases"]) or "—", r["summary"]] for r in rows],
        )

    ui.emit(rows, text)


@click.command("show")
@click.argument("name", shell_complete=plugin_name("agent"))
@click.pass_obj
def show(ui: Ui, name: str) -> None:
    """Everything a plugin, or a TOML manifest, says about one agent."""
    from benchflow_core.plugins import registry
    from benchflow_core.rollout.choose import find_agent

    found = find_agent(name, registry())
    data = {**_describe(found), "notes": [one.detail for one in found.spec.check() if one.status != "ok"]}

    def text() -> None:
        for key, value in data.items():
            shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            if shown:
                ui.out(f"{key.replace('_', ' '):<16}{shown}")

    ui.emit(data, text)


agent.add_command(list_agents)
agent.add_command(show)


def _protocol(spec: Any) -> str:
    if spec.prepare:
        return "ACP" if spec.session == type(spec).session else spec.session.partition(":")[0]
    return "wrapper" if spec.wrap else "by name" if spec.opens else "built in"


def _describe(loaded: Any) -> dict[str, Any]:
    spec = loaded.spec
    return {
        "name": loaded.called,
        "aliases": sorted({loaded.name, *loaded.aliases} - {loaded.called}),
        "summary": spec.summary,
        "version": spec.version,
        "protocol": _protocol(spec),
        "auth": _auth(spec),
        "purpose": spec.purpose,
        "default_model": spec.default_model or "",
        "wires": list(spec.wires),
        "layers": [layer.key for layer in spec.layers],
        "runtimes": [f"{r.name} {r.minimum}".strip() for r in spec.runtimes],
        "needs": sorted(spec.needs),
        "skill_paths": list(spec.skill_paths),
        "mcp_servers": {"acp": "over ACP", "launch": "in its own settings"}.get(spec.mcp, "none"),
        "web_tools": "can be switched off" if spec.web_tools_can_be_disabled else "as they are",
        "failed_calls": "said by the gateway alone" if spec.errors_are_silent else "said by the agent",
        "native_login": [_login(a) for a in spec.auth if a.native],
        "homepage": spec.homepage,
        "distribution": f"{loaded.distribution} {loaded.version}".strip(),
    }


def _auth(spec: Any) -> str:
    """Alternatives as people read them: `OPENAI_API_KEY, CODEX_API_KEY or host login`."""
    ways = list(dict.fromkeys(a.hint or " + ".join(a.env) or a.name.replace("-", " ") for a in spec.auth))
    if not any(not option.native or option.hint for option in spec.auth):
        ways = (["inferred from model"] if spec.wires else ["none"]) + ways
    return " or ".join([", ".join(ways[:-1]), ways[-1]]) if len(ways) > 1 else ways[0]


def _login(option: Any) -> str:
    """What `--auth native` looks for."""
    return " + ".join([*option.env, *option.files])
