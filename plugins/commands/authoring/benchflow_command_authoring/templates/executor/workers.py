"""A worker per item. To reach another machine, let `argv` begin with what gets there: `ssh`, `srun`, `kubectl exec`."""

from __future__ import annotations

import asyncio

from benchflow_core.contracts import Capacity, ExecutorContext, Hear, ItemResult, PlanItem
from benchflow_executor_processes.worker_process import WORKER, WorkerProcess


class Workers:
    def __init__(self, context: ExecutorContext) -> None:
        self._env = dict(context.env)
        self._argv = (context.options.get("python", WORKER[0]), *WORKER[1:])
        self._running: set[WorkerProcess] = set()

    def capacity(self) -> Capacity | None:
        return None

    async def run(self, item: PlanItem, hear: Hear) -> ItemResult:
        worker = await WorkerProcess.start(self._env, self._argv)
        self._running.add(worker)
        try:
            return await worker.run(item, hear)
        finally:
            self._running.discard(worker)
            await worker.close()

    async def close(self) -> None:
        await asyncio.gather(*(worker.close() for worker in self._running))
