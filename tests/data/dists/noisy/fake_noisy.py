from benchflow_core.contracts import SandboxSpec
from benchflow_core.hookspecs import hookimpl

import os

print("hello from the import")
os.write(1, b"hello past Python\n")


@hookimpl
def benchflow_sandbox():
    print("hello from the hook")
    return SandboxSpec(summary="prints, but works", open=lambda context: None, capabilities=frozenset())
