from benchflow_core.hookspecs import hookimpl



@hookimpl
def benchflow_sandbox():
    return {"summary": "a dict"}
