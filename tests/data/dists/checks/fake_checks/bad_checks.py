from benchflow_core.contracts import SandboxSpec
from benchflow_core.hookspecs import hookimpl


def raises():
    raise OSError("no route to anywhere")


@hookimpl
def benchflow_sandbox():
    return SandboxSpec(
        summary="its check answers nonsense",
        open=lambda context: None,
        capabilities=raises,
        available=raises,
        check=lambda: ["fine"],
    )
