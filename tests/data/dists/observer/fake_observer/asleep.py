from benchflow_core.contracts import ObserverSpec
from benchflow_core.hookspecs import hookimpl


@hookimpl
def benchflow_observer():
    return ObserverSpec(summary="asleep", on_event=lambda event: None, enabled=lambda: False)
