"""A protocol server as a process of its own, as far from the code under test as a vendor is."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping

from benchflow_testing_clouds.control import Remote

__all__ = ["running"]


@contextlib.contextmanager
def running(vendor: str, *options: str, env: Mapping[str, str] | None = None) -> Iterator[Remote]:
    """`vendor`: a module of this package that `python -m benchflow_testing_clouds VENDOR` knows."""
    command = [sys.executable, "-m", "benchflow_testing_clouds", vendor, *options]
    full = {**os.environ, **(env or {})}
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=full, start_new_session=True)
    assert child.stdin is not None and child.stdout is not None
    try:
        line = child.stdout.readline()
        assert line, f"the {vendor} server did not start"
        told = json.loads(line)
        yield Remote(told["url"], told["control"], told["env"], child.pid)
    finally:
        child.stdin.close()  # the server ends with its owner, whatever becomes of that
        try:
            child.wait(30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()
