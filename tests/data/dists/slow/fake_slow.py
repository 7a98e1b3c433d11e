from benchflow_core.contracts import SandboxSpec
from benchflow_core.hookspecs import hookimpl

import os
import pathlib
import time

if marker := os.environ.get("FAKE_SLOW_MARKER"):
    pathlib.Path(marker).touch()
time.sleep(float(os.environ.get("FAKE_SLOW_SECONDS", "3")))


@hookimpl
def benchflow_sandbox():
    return SandboxSpec(summary="took three seconds to import", open=lambda context: None, capabilities=frozenset())
