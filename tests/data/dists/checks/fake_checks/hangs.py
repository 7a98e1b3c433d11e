import time

from benchflow_core.contracts import SandboxSpec
from benchflow_core.hookspecs import hookimpl


@hookimpl
def benchflow_sandbox():
    return SandboxSpec(
        summary="its check hangs",
        open=lambda context: None,
        capabilities=frozenset(),
        check=lambda: time.sleep(600),
    )
