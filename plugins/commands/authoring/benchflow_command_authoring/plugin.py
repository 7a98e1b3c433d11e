"""The plugin: commands for authors, in several groups of `bench`."""

from __future__ import annotations

from benchflow_core.contracts import CommandSpec
from benchflow_core.hookspecs import hookimpl

_HERE = "benchflow_command_authoring"
_COMMANDS = {
    "agent.check": f"{_HERE}.agent_check:check",
    "eval.shell": f"{_HERE}.shell:rollout_shell",
    "plugins.doctor": f"{_HERE}.plugins:doctor",
    "plugins.new": f"{_HERE}.new:new",
    "plugins.show": f"{_HERE}.plugins:show",
    "sandbox.shell": f"{_HERE}.shell:task_shell",
    "tasks.certify": f"{_HERE}.tasks:certify",
    "tasks.check": f"{_HERE}.tasks:check",
    "tasks.init": f"{_HERE}.tasks:init",
    "tasks.migrate": f"{_HERE}.tasks:migrate",
}


@hookimpl
def benchflow_command() -> CommandSpec:
    return CommandSpec(summary="make and check tasks, agents and plugins", commands=_COMMANDS)
