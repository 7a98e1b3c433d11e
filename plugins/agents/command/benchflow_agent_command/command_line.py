"""`-a 'cmd:…'`: any ACP program that is already in the box, by its command line."""

from __future__ import annotations

import shlex

from benchflow_core.contracts.agents import AgentContext, AgentSpec, Launch
from benchflow_core.errors import UsageError

__all__ = ["command_agent"]


def command_agent(command: str) -> AgentSpec:
    """An agent that runs this command line, split as a shell would but run without one."""
    try:
        argv = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"cannot split the agent command {command!r}: {error}.", remedy="Check its quotes.") from None
    if not argv:
        raise UsageError("the agent command is empty.", remedy="Write -a 'cmd:PROGRAM ARGUMENTS'.")

    def prepare(context: AgentContext) -> Launch:
        return Launch(argv=argv, env=dict(context.env))

    return AgentSpec(
        summary=f"ACP command: {shlex.join(argv)}",
        prepare=prepare,
        model_in_session="config_option",
        takes_model=True,
        options={},
    )
