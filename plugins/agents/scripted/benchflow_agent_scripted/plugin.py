"""The plugin: where the agent program is, and how a script reaches it."""

from __future__ import annotations

from benchflow_core.contracts import AgentContext, AgentOption, AgentSpec, Launch, Layer, Runtime
from benchflow_core.hookspecs import hookimpl

VERSION = "1"
"""Of the agent program; part of the layer's key beside the hash of its files."""
PREFIX = "/opt/benchflow/agents/scripted"


@hookimpl
def benchflow_agent() -> AgentSpec:
    return AgentSpec(
        summary="plays a YAML script over ACP: messages, tool calls that really run, permission requests, failures",
        prepare=prepare,
        takes_model=True,
        options={
            "script": AgentOption("A YAML file of steps, or the YAML itself.", required=True, env="BENCHFLOW_SCRIPT")
        },
        layers=(program_layer(),),
        runtimes=(Runtime("python", "3.8"),),
        model_in_session="config_option",
        effort_option="effort",
        skill_paths=("~/.agents/skills",),
        version=VERSION,
    )


def program_layer() -> Layer:
    import hashlib
    from pathlib import Path

    folder = Path(__file__).with_name("program")
    files = {name: (folder / name).read_bytes() for name in ("agent.py", "mcp_call.py", "turn.py")}
    digest = hashlib.sha256(b"\0".join(files.values())).hexdigest()[:12]
    return Layer(key=f"benchflow-scripted@{VERSION}+{digest}", prefix=PREFIX, files=files)


def prepare(context: AgentContext) -> Launch:
    """The script is checked here, on the host; the program gets it as JSON."""
    import hashlib
    import json

    from benchflow_agent_scripted.script import chosen_script

    script = chosen_script(context.options, context.env)
    settings = {"version": VERSION, "role": context.role, "model": context.model}
    content = json.dumps({**script, **settings}, sort_keys=True).encode()
    path = f"{context.home.rstrip('/')}/.benchflow-scripted-{hashlib.sha256(content).hexdigest()[:12]}.json"
    python = context.runtimes.get("python", "python3")
    return Launch(
        # No site-packages and no PYTHON* variables: what a task installs must not change how the script is played.
        argv=(python, "-B", "-E", "-s", "-S", f"{context.prefix or PREFIX}/agent.py", path),
        env=dict(context.env),
        files={path: content},
    )
