"""`nop`: does nothing. What a task scores with it is what it gives away for free."""

from __future__ import annotations

from benchflow_core.contracts import AgentSpec, PromptOutcome, Session, SessionContext
from benchflow_core.hookspecs import hookimpl


@hookimpl
def benchflow_agent() -> AgentSpec:
    return AgentSpec(
        summary="does nothing: a task must not be passed by it",
        connect=connect,
        purpose="null",
        takes_model=False,
        options={},
    )


async def connect(context: SessionContext) -> Session:
    return NopSession()


class NopSession:
    """Every turn ends at once."""

    @property
    def id(self) -> str:
        return "nop"

    async def prompt(self, text: str) -> PromptOutcome:
        return PromptOutcome("end_turn")

    async def cancel(self) -> None:
        """There is never anything to cancel."""

    async def close(self) -> None:
        """There is never anything to close."""
