"""The plugin: commands that read results, and the reader that other commands get."""

from __future__ import annotations

from benchflow_core.contracts import CommandSpec
from benchflow_core.hookspecs import hookimpl

_HERE = "benchflow_command_results"
_COMMANDS = {
    "eval.compare": f"{_HERE}.compare_command:compare",
    "eval.export": f"{_HERE}.exchange:export",
    "eval.import": f"{_HERE}.exchange:import_bundle",
    "eval.list": f"{_HERE}.overview:list_jobs",
    "eval.metrics": f"{_HERE}.overview:metrics",
    "eval.settle": f"{_HERE}.settle:settle",
    "eval.show": f"{_HERE}.show:show",
    "metrics": f"{_HERE}.overview:metrics",
}


@hookimpl
def benchflow_command() -> CommandSpec:
    return CommandSpec(
        summary="look at results, compare and share them", commands=_COMMANDS, results=f"{_HERE}.reader:Reader"
    )
