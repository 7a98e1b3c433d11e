from benchflow_core.contracts import SandboxSpec
from benchflow_core.hookspecs import hookimpl



@hookimpl
def benchflow_sandbox():
    return SandboxSpec(summary="works, with a second hook that does not", open=lambda context: None, capabilities=frozenset())


@hookimpl
def benchflow_agnt():
    return None
