from benchflow_core.hookspecs import hookimpl


@hookimpl
def benchflow_sandbox():
    raise ValueError("no spec today")
