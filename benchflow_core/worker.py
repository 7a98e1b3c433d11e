"""`python -m benchflow_core.worker`: run items of a job in this process, as its executor says over standard input."""

from __future__ import annotations

import sys

from benchflow_core.plugins.dotted import resolve

__all__ = ["main"]

_SERVE = "benchflow_executor_processes.service:serve"


def main() -> int:
    """Run items until the input ends, and return the exit code."""
    from benchflow_core.evaluation.worker import Worker

    ended: int = resolve(_SERVE, "a worker of an executor")(Worker, sys.argv[1:])
    return ended


if __name__ == "__main__":
    sys.exit(main())
