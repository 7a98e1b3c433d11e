"""An agent and a sandbox that do nothing, for measuring what the engine itself costs. Never installed."""

from __future__ import annotations

from benchflow_core.contracts import (
    AgentSpec,
    PromptOutcome,
    SandboxContext,
    SandboxProvider,
    SandboxSpec,
    Session,
    SessionContext,
)
from benchflow_core.hookspecs import hookimpl


@hookimpl
def benchflow_agent() -> AgentSpec:
    return AgentSpec(summary="ends every turn at once", connect=_connect)


@hookimpl
def benchflow_sandbox() -> SandboxSpec:
    return SandboxSpec(
        summary="every command succeeds and nothing runs",
        open=_open,
        capabilities=frozenset({"users", "image-build", "image-prebuilt", "network-public", "network-none"}),
    )


async def _connect(context: SessionContext) -> Session:
    return _Session()


def _open(context: SandboxContext) -> SandboxProvider:
    from benchflow_perf_noop.box import Provider

    return Provider()


class _Session:
    id = "noop"

    async def prompt(self, text: str) -> PromptOutcome:
        return PromptOutcome("end_turn")

    async def cancel(self) -> None:
        """Nothing runs."""

    async def close(self) -> None:
        """Nothing is open."""
