from benchflow_core.contracts import CommandSpec
from benchflow_core.hookspecs import hookimpl


@hookimpl
def benchflow_command():
    return CommandSpec(summary="cannot be built", build=lambda: 1 / 0)
