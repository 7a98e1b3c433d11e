from benchflow_core.contracts import AgentSpec, Launch
from benchflow_core.hookspecs import hookimpl


def wrap(inner):
    return "not a spec"


@hookimpl
def benchflow_agent():
    return AgentSpec(summary="wraps others", prepare=lambda context: Launch(argv=("wrapper",)), wrap=wrap)
