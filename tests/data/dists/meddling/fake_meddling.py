from benchflow_core.contracts import SandboxSpec
from benchflow_core.hookspecs import hookimpl

import os
import signal
import threading

os.chdir("/")
signal.signal(signal.SIGTERM, signal.SIG_IGN)
threading.Timer(0.5, lambda: None).start()


@hookimpl
def benchflow_sandbox():
    return SandboxSpec(summary="meddles, but works", open=lambda context: None, capabilities=frozenset())
