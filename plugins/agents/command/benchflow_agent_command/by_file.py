"""The plugin: `-a ./agent.toml`."""

from __future__ import annotations

from benchflow_core.contracts import AgentSpec
from benchflow_core.hookspecs import hookimpl

SUFFIX = ".toml"


def _opens(name: str) -> AgentSpec | None:
    if not name.endswith(SUFFIX):
        return None
    from benchflow_agent_command.manifest import manifest_agent

    return manifest_agent(name)


@hookimpl
def benchflow_agent() -> AgentSpec:
    return AgentSpec(summary="an ACP agent that a TOML file describes: -a ./agent.toml", opens=_opens)
