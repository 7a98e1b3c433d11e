"""An executor runs real items: workers plan, start boxes, score and write, as they do in a job."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
import pytest_asyncio

from benchflow_core.contracts import Executor, ExecutorContext, ExecutorSpec, ItemResult, PlanItem
from benchflow_testing_kit.host import eventually, host_processes
from benchflow_testing_kit.plugin import PluginConformance
from benchflow_testing_kit.resolve import Resolved
from benchflow_testing_kit.suite import limit

__all__ = ["ExecutorConformance"]

_TASK = """[metadata.benchflow]
allow_substitute = true
[agent]
timeout_sec = 300
[verifier]
timeout_sec = 60
"""
_TEST = """#!/bin/sh
if grep -q done /app/done.txt; then r=1; else r=0; fi
echo $r > /logs/verifier/reward.txt
"""
_FILES = {
    "task.toml": _TASK,
    "instruction.md": "Write `done` into /app/done.txt.\n",
    "environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\n",
    "tests/test.sh": _TEST,
}


@dataclass
class Items:
    """Makes items of a job in a folder, and an executor that runs them."""

    folder: Path
    spec: ExecutorSpec
    stamp: Mapping[str, str]
    sandbox: str
    options: Mapping[str, str]
    marker: str = field(default_factory=lambda: f"61.{secrets.randbelow(10**9):09d}")
    """In the command line of what an item runs, and of nothing else."""
    heard: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    opened: list[Executor] = field(default_factory=list)

    def task(self, name: str, solution: str) -> Path:
        """A task of Harbor's format that the reference solution solves."""
        root = self.folder / "tasks" / name
        for path, text in {**_FILES, "solution/solve.sh": f"#!/bin/sh\n{solution}\n"}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return root

    def items(self, count: int, task: Path, **settings: Any) -> list[PlanItem]:
        """Planned here, as a job plans them."""
        from benchflow_core.evaluation.executor import job_of, make_item
        from benchflow_core.rollout.host import Host
        from benchflow_core.rollout.plan import make_plan
        from benchflow_core.settings.models import RolloutConfig

        host = Host()
        job = job_of(host, self.stamp, observed=True)
        (self.folder / "jobs" / "kit").mkdir(parents=True, exist_ok=True)
        made = []
        for number in range(count):
            config = RolloutConfig(
                task_path=task,
                jobs_dir=self.folder / "jobs",
                job_name="kit",
                rollout_name=f"{task.name}__{number}",
                **{"sandbox": self.sandbox, "agent": _reference(host), **settings},
            )
            made.append(make_item(config, make_plan(config, host.plugins, host.env), job))
        return made

    async def open(self) -> Executor:
        context = ExecutorContext(self.folder / "jobs" / "kit", 4, self.options, dict(os.environ))
        self.opened.append(await asyncio.to_thread(self.spec.open, context))
        return self.opened[-1]

    async def run(self, executor: Executor, *items: PlanItem) -> list[ItemResult]:
        return await asyncio.gather(*(executor.run(item, self.hearing(item)) for item in items))

    def hearing(self, item: PlanItem) -> Any:
        return lambda message: self.heard.append((item.id, json.loads(json.dumps(message))))

    def events(self, item: PlanItem) -> list[str]:
        return [said["event"]["type"] for name, said in self.heard if name == item.id and "event" in said]


def _reference(host: Any) -> str:
    """The agent that plays the task's own solution."""
    found = [agent.name for agent in host.plugins.all("agent") if agent.spec.purpose == "reference"]
    if not found:
        pytest.skip("no agent that plays the reference solution is installed")
    return str(found[0])


class ExecutorConformance(PluginConformance):
    """Items run, refuse to run on other versions, can be stopped, and leave nothing behind."""

    kind: ClassVar[str] = "executor"
    settings: ClassVar[frozenset[str]] = PluginConformance.settings | {"sandbox", "executor_options"}

    @pytest.fixture
    def sandbox(self) -> str:
        """The sandbox that items run in, by name."""
        return "local"

    @pytest.fixture
    def executor_options(self) -> Mapping[str, str]:
        """As `--executor-option` gives them."""
        return {}

    @pytest_asyncio.fixture(loop_scope="class")
    async def kit(
        self, resolved: Resolved, sandbox: str, executor_options: Mapping[str, str], tmp_path: Path
    ) -> AsyncIterator[Items]:
        found = resolved.spec.available()
        if not found.ok:
            pytest.skip(f"not available here: {found.reason}")
        dist = resolved.distribution() if resolved.name else None
        stamp = {"kind": "executor", "name": resolved.name or "", "distribution": dist.name if dist else ""}
        stamp["version"] = dist.version if dist else ""
        kit = Items(tmp_path, resolved.spec, stamp, sandbox, executor_options)
        yield kit
        for executor in kit.opened:
            await executor.close()

    @limit(180)
    async def test_items_are_run_by_workers(self, kit: Items) -> None:
        items = kit.items(3, kit.task("quick", "echo done > /app/done.txt"))
        results = await kit.run(await kit.open(), *items)
        assert [result.id for result in results] == [item.id for item in items], "each result is of its own item"
        assert [result.error for result in results] == [None] * 3
        for item, result in zip(items, results, strict=True):
            assert result.rollout_dir is not None
            written = json.loads((Path(result.rollout_dir) / "result.json").read_text())
            assert (written["rollout_name"], written["rewards"]) == (item.id, {"reward": 1.0})
            lock = json.loads((Path(result.rollout_dir) / "lock.json").read_text())
            assert lock["worker"]["pid"] != os.getpid(), "an item is run by a worker, not here"
            told = kit.events(item)
            assert told and (told[0], told[-1]) == ("RolloutStarted", "RolloutFinished"), (
                "`hear` gets what a worker says"
            )

    @limit(120)
    async def test_other_versions_are_refused(self, kit: Items) -> None:
        (item,) = kit.items(1, kit.task("quick", "echo done > /app/done.txt"))
        wrong = dataclasses.replace(item, requirements=["benchflow-core==0.0.1", "no-such-distribution==1"])
        (result,) = await kit.run(await kit.open(), wrong)
        assert result.rollout_dir is None and result.error is not None, "it ran although the versions differ"
        assert (result.error["kind"], result.error["code"]) == ("configuration", "worker_differs")
        assert "benchflow-core" in result.error["message"] and "no-such-distribution" in result.error["message"]

    @limit(180)
    async def test_cancelled_item_is_torn_down(self, kit: Items) -> None:
        secret = f"canary{kit.marker}"
        task = kit.task("slow", f"sleep {kit.marker}")
        (item,) = kit.items(1, task, agent_env={"KIT_TOKEN": secret})
        running = asyncio.create_task((await kit.open()).run(item, kit.hearing(item)))
        assert await eventually(lambda: bool(host_processes(kit.marker)) or running.done(), seconds=90)
        assert not running.done(), "it ended before it was stopped"
        assert not host_processes(secret), "a secret of the item is in a command line"
        running.cancel("the kit says stop")
        await asyncio.wait([running], timeout=60)
        assert running.cancelled(), "a cancelled `run` raises, once the item is torn down"
        assert not host_processes(kit.marker), "what the item ran goes on"
        folder = kit.folder / "jobs" / "kit" / item.id
        written = json.loads((folder / "result.json").read_text())
        assert written["error_info"]["kind"] == "cancelled" and "the kit says stop" in written["error"]

    @limit(180)
    async def test_closing_leaves_no_worker(self, kit: Items) -> None:
        (item,) = kit.items(1, kit.task("quick", "echo done > /app/done.txt"))
        executor = await kit.open()
        (result,) = await kit.run(executor, item)
        assert result.rollout_dir is not None, result.error
        worker = json.loads((Path(result.rollout_dir) / "lock.json").read_text())["worker"]
        await executor.close()
        await executor.close()
        if worker["host"] == os.uname().nodename:
            assert await eventually(lambda: not Path(f"/proc/{worker['pid']}").exists(), seconds=15)

    @limit(60)
    async def test_unused_executor_closes(self, kit: Items) -> None:
        executor = await kit.open()
        found = executor.capacity()
        assert found is None or (found.cpus > 0 and found.memory_mb > 0)
        await executor.close()
