"""The plugin: `-a 'cmd:PROGRAM ARGUMENTS'`."""

from __future__ import annotations

from benchflow_core.contracts import AgentSpec
from benchflow_core.hookspecs import hookimpl

PREFIX = "cmd:"


def _opens(name: str) -> AgentSpec | None:
    if not name.startswith(PREFIX):
        return None
    from benchflow_agent_command.command_line import command_agent

    return command_agent(name.removeprefix(PREFIX))


@hookimpl
def benchflow_agent() -> AgentSpec:
    return AgentSpec(summary="any ACP program in the box: -a 'cmd:PROGRAM ARGUMENTS'", opens=_opens)
