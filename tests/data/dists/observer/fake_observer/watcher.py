from benchflow_core.contracts import ObserverSpec
from benchflow_core.hookspecs import hookimpl


@hookimpl
def benchflow_observer():
    return ObserverSpec(summary="watcher", on_event=lambda event: None)
