"""Installed agents, by name."""

from __future__ import annotations

from benchflow_core.contracts.agents import AgentSpec
from benchflow_core.plugins import registry

__all__ = ["get_agent", "list_agents"]


def list_agents() -> list[str]:
    """Names, from metadata alone."""
    return registry().names("agent")


def get_agent(name: str) -> AgentSpec:
    """What the plugin of that name says of itself; an alias is a name. Raises `PluginError`."""
    spec: AgentSpec = registry().get("agent", name).spec
    return spec
