"""The Python that is mounted read-only in every box, where it runs the first process."""

from __future__ import annotations

from typing import Final

from benchflow_boxkit.interpreter import Interpreter

__all__ = ["INTERPRETER", "MOUNT", "PYTHON", "SUPERVISOR"]

MOUNT: Final = "/opt/benchflow/box"
INTERPRETER: Final = Interpreter(MOUNT, ("benchflow_boxkit", "benchflow_sandbox_docker"))
PYTHON: Final = INTERPRETER.python
SUPERVISOR: Final = INTERPRETER.command("benchflow_sandbox_docker.inside.main")
