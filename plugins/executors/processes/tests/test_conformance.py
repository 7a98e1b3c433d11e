"""The kit's checks: real items, in real worker processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
from benchflow_testing_kit import ExecutorConformance
from benchflow_testing_kit.host import eventually, host_processes

from benchflow_core.evaluation import Evaluation, EvaluationConfig

TASK = Path(__file__).parents[4] / "examples" / "tasks" / "hello-file"


class TestProcesses(ExecutorConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "processes"


@pytest.mark.timeout(120)
async def test_a_worker_that_answers_nothing_is_lost_and_replaced(tmp_path, monkeypatch):
    """As where its host is frozen: it lives, and no line comes. One that works for long without news is left alone."""
    monkeypatch.setattr("benchflow_executor_processes.worker_process.SILENCE", 8.0)
    sleep = f"12.{os.getpid():07d}"
    given = {"agent": "scripted", "agent_options": {"script": f"- run: sleep {sleep}"}, "sandbox": "local"}
    config = EvaluationConfig(**given, executor="processes", concurrency=1)
    work = asyncio.create_task(Evaluation(TASK, tmp_path / "jobs", config, "j").run())
    assert await eventually(lambda: bool(host_processes(sleep)), seconds=60)
    os.kill(_worker(), signal.SIGSTOP)
    result = await work
    assert result.coverage == 1.0
    [lost] = [json.loads(path.read_text()) for path in (tmp_path / "jobs" / "j").glob("attempts/*/result.json")]
    assert lost["error_info"]["code"] == "worker_lost" and "it said nothing for 8 s" in lost["error"]


def _worker() -> int:
    """The process id of the only worker of this process."""
    mine = [
        path.parent for path in Path("/proc").glob("[0-9]*/status") if f"PPid:\t{os.getpid()}\n" in path.read_text()
    ]
    return next(int(folder.name) for folder in mine if b"benchflow_core.worker" in (folder / "cmdline").read_bytes())
