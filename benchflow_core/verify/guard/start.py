# Runs in interpreters of the box, down to Python 3.6, not in ours.
# ruff: noqa: UP036
# mypy: ignore-errors
"""Placed as `sitecustomize.py`, first on the verifier's PYTHONPATH: starts the guard, then the image's own one.

Python 2 and everything before 3.6 goes on without the guard, so nothing here may need more than they have.
"""

import sys

_before = set(sys.modules)


def _start():
    own = __file__.rsplit("/", 1)[0]
    if sys.version_info < (3, 6):
        sys.path[:] = [entry for entry in sys.path if entry != own]
        return
    import benchflow_guard

    benchflow_guard.start(own, _before)
    benchflow_guard.chain("sitecustomize")


_start()
