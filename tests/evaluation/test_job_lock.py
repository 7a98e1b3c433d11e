"""Locks of a job: one process runs it, and nobody goes on while workers of an earlier one still tear down."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchflow_core.evaluation.joblock import wait_for_workers

HOLD = """
import sys, time
from pathlib import Path
from benchflow_core.evaluation.joblock import hold_as_worker
hold_as_worker(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    argv = [sys.executable, "-c", HOLD, str(tmp_path)]
    begun = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for worker in begun:
        assert worker.stdout is not None and worker.stdout.readline() == "held\n", "several hold it together"
    yield begun
    for worker in begun:
        worker.kill()
        worker.communicate()


async def test_workers_of_an_earlier_run_are_waited_for(workers: list[subprocess.Popen[str]], tmp_path: Path) -> None:
    said: list[str] = []
    waiting = asyncio.create_task(wait_for_workers(tmp_path, said.append))
    await asyncio.sleep(1.5)
    assert not waiting.done() and "waiting for the workers of an earlier run" in said[0]
    workers[0].kill()
    await asyncio.sleep(0.5)
    assert not waiting.done(), "one is left"
    workers[1].kill()
    await asyncio.wait_for(waiting, 10)
