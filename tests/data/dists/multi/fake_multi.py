"""Two kinds and an alias from one module."""

from benchflow_core.contracts import AgentSpec, AuthOption, Launch, SandboxSpec
from benchflow_core.hookspecs import hookimpl


@hookimpl
def benchflow_agent():
    return AgentSpec(
        summary="an agent of many names",
        prepare=lambda context: Launch(argv=("multi",)),
        auth=(AuthOption("api-key", env=("FAKE_AGENT_KEY",)),),
    )


@hookimpl
def benchflow_sandbox():
    return SandboxSpec(summary="a sandbox too", open=lambda context: None, capabilities=frozenset({"users", "snapshot"}))
