from benchflow_core.hookspecs import hookimpl


@hookimpl
def benchflow_sandbox(config):
    return config
