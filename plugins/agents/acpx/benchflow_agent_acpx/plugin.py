"""The plugin: `acpx/<agent>` starts the agent as it is, with acpx between it and BenchFlow."""

from __future__ import annotations

from pathlib import Path

from benchflow_layers import NODE, npm_layers

from benchflow_core.contracts import AgentContext, AgentSpec, Launch, Layer
from benchflow_core.hookspecs import hookimpl

VERSION = "0.19.1"
PREFIX = "/opt/benchflow/agents/acpx"
_LOCK = Path(__file__).with_name("package-lock.json")


@hookimpl
def benchflow_agent() -> AgentSpec:
    return AgentSpec(
        summary=f"acpx {VERSION}, a client for ACP agents: acpx/<agent> runs any of them through it",
        wrap=wrap,
        layers=_layers(),
        version=VERSION,
        homepage="https://acpx.sh",
    )


def wrap(inner: AgentSpec) -> AgentSpec:
    """The same agent with the same needs; only what BenchFlow talks to is another program."""
    from dataclasses import replace

    from benchflow_core.errors import ConfigurationError

    start = inner.prepare
    if start is None:
        raise ConfigurationError("acpx runs agents that are ACP programs; this one is built in.")

    def prepare(context: AgentContext) -> Launch:
        return _through_acpx(context, start(context))

    own = tuple(layer for layer in _layers() if layer.key not in {known.key for known in inner.layers})
    return replace(
        inner,
        summary=f"{inner.summary}, through acpx {VERSION}",
        prepare=prepare,
        layers=(*inner.layers, *own),
        handshake_timeout=inner.handshake_timeout + 60.0,
        version=VERSION,
        reports_version=True,
    )


def _layers() -> tuple[Layer, ...]:
    bridge = (Path(__file__).parent / "bridge.mjs").read_bytes()
    check = (VERSION, f"{PREFIX}/node_modules/.bin/acpx", "--version")
    return npm_layers(PREFIX, f"acpx@{VERSION}", lock=_LOCK.read_bytes(), files={"bridge.mjs": bridge}, check=check)


def _through_acpx(context: AgentContext, launch: Launch) -> Launch:
    import json
    import shlex
    from dataclasses import replace

    folder = f"{context.home.rstrip('/')}/.benchflow-acpx/{context.role}"
    script = f"cd {shlex.quote(launch.cwd or context.workdir)} && exec {shlex.join(launch.argv)}\n"
    settings = {
        # A file, since acpx has its own way to split a command line.
        "agent": f"sh {folder}/agent.sh",
        "permissions": "--deny-all" if context.permissions == "reject" else "--approve-all",
    }
    files = {f"{folder}/agent.sh": script.encode(), f"{folder}/settings.json": json.dumps(settings).encode()}
    argv = (NODE, f"{PREFIX}/bridge.mjs", f"{folder}/settings.json")
    return replace(launch, argv=argv, files={**launch.files, **files}, cwd=None)
