"""One rollout that fails in any way never harms another. An agent that misbehaves in every way there is, in one job."""

from __future__ import annotations

import json
import os
import shutil
import textwrap
from pathlib import Path

import pytest

NOOP = Path(__file__).parents[2] / "benchmarks" / "perf" / "noop"
PLUGIN = """
import asyncio
from benchflow_core.contracts import AgentSpec, PromptOutcome
from benchflow_core.errors import AgentCrashed, InfrastructureError
from benchflow_core.hookspecs import hookimpl


class Wild:
    id = "wild"

    def __init__(self, way):
        self.way = way

    async def prompt(self, text):
        if self.way == "exits":
            raise SystemExit(3)
        if self.way == "cancels-itself":
            raise asyncio.CancelledError()
        if self.way == "recurses":
            return await self.prompt(text)
        if self.way == "defect":
            raise KeyError("no such thing")
        if self.way == "lost":
            raise InfrastructureError("the box is gone")
        if self.way == "crashes":
            raise AgentCrashed("gone")
        return PromptOutcome("end_turn")

    async def cancel(self):
        pass

    async def close(self):
        if self.way == "does-not-close":
            raise RuntimeError("stuck")


async def connect(context):
    if context.task.path.name == "does-not-open":
        raise OSError(28, "No space left on device")
    return Wild(context.task.path.name)


@hookimpl
def benchflow_agent():
    return AgentSpec(summary="fails in every way", connect=connect)
"""
WAYS = ["exits", "cancels-itself", "recurses", "defect", "lost", "crashes", "does-not-close", "does-not-open"]


@pytest.fixture
def wild(tmp_path, examples):
    site = tmp_path / "site"
    info = site / "wild_agent-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wild-agent\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[benchflow.agents]\nwild = wild_plugin\n")
    (site / "wild_plugin.py").write_text(textwrap.dedent(PLUGIN))
    for way in [*WAYS, "fine"]:
        shutil.copytree(examples / "hello-file", tmp_path / "tasks" / way)
    return {"PYTHONPATH": os.pathsep.join([str(site), str(NOOP)])}


def test_every_other_rollout_is_finished_and_every_failure_is_typed(bench, wild, tmp_path):
    args = ["--json", "eval", "create", "-t", tmp_path / "tasks", "-a", "wild", "-e", "perf-noop", "--job-name", "j"]
    done = bench(*args, "--trials", "3", "-c", "4", "--retries", "1", more=wild)
    assert done.code == 1, done.err
    rows = done.json["rollouts"]
    assert len(rows) == 27 == done.json["total"] and done.json["stopped"] is None
    by_task: dict[str, list[dict]] = {}
    for row in rows:
        by_task.setdefault(row["task_name"], []).append(row)
    for fine in ("fine", "does-not-close"):
        assert [r["rewards"] for r in by_task[fine]] == [{"reward": 1.0}] * 3, by_task[fine]
    assert all(r["error_info"]["code"] == "agent_crashed" and r["rewards"] for r in by_task["crashes"])
    for way in ("exits", "cancels-itself", "recurses", "defect", "lost", "does-not-open"):
        for row in by_task[way]:
            assert row["rewards"] is None and row["error_info"]["kind"], (way, row)
    kept = [p.name.partition("__")[0] for p in (tmp_path / "jobs" / "j" / "attempts").iterdir()]
    assert kept == ["lost"] * 3, "only what is worth it is tried again"
    for folder in (tmp_path / "jobs" / "j").glob("*__*"):
        assert json.loads((folder / "result.json").read_text())["rollout_name"] == folder.name
        assert '"rollout_finished"' in (folder / "events.jsonl").read_text(), "torn down like any other"


def test_a_line_of_the_journal_that_a_kill_cut_short_is_mended(bench, wild, tmp_path, examples):
    """A journal cut in the middle of a line by a kill is mended by the next run."""
    args = ["eval", "create", "-t", tmp_path / "tasks" / "fine", "-a", "wild", "-e", "perf-noop", "--job-name", "j"]
    assert bench(*args, more=wild).code == 0
    journal = tmp_path / "jobs" / "j" / "journal.jsonl"
    journal.write_text(journal.read_text() + '{"time": 1, "kind": "sta')
    assert bench("eval", "extend", tmp_path / "jobs" / "j", "--trials", "2", more=wild).code == 0
    shown = bench("eval", "attach", tmp_path / "jobs" / "j", more=wild)
    assert shown.code == 0 and "2 rollouts, 1 of them finished before" in shown.err
