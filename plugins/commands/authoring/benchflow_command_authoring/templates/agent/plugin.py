"""The plugin: where the agent program is and how it is started."""

from __future__ import annotations

from benchflow_core.contracts import AgentContext, AgentSpec, Launch, Layer, Runtime
from benchflow_core.hookspecs import hookimpl

VERSION = "0.1.0"
PREFIX = "/opt/benchflow/agents/{{name}}"


def prepare(context: AgentContext) -> Launch:
    """Pure: it says how to start the agent, the core does it. Secrets go into `env` or `files`, never into `argv`."""
    return Launch(
        argv=(context.runtimes["python"], "-E", "-s", f"{context.prefix}/program.py"),
        env=dict(context.env),
    )


@hookimpl
def benchflow_agent() -> AgentSpec:
    from pathlib import Path

    program = Path(__file__).with_name("program.py").read_bytes()
    return AgentSpec(
        summary="a small agent that runs commands it is told to",
        prepare=prepare,
        layers=(Layer(key=f"{{name}}@{VERSION}", prefix=PREFIX, files={"program.py": program}),),
        runtimes=(Runtime("python", "3.9"),),
        version=VERSION,
    )
