"""`oracle`: plays the task's reference solution. A task that it does not pass is broken."""

from __future__ import annotations

from benchflow_core.contracts import AgentSpec, Session, SessionContext
from benchflow_core.hookspecs import hookimpl


@hookimpl
def benchflow_agent() -> AgentSpec:
    return AgentSpec(
        summary="plays the task's reference solution",
        connect=connect,
        purpose="reference",
        takes_model=False,
        options={},
    )


async def connect(context: SessionContext) -> Session:
    from benchflow_agent_oracle.session import OracleSession, find_solution

    return OracleSession(context, find_solution(context))
