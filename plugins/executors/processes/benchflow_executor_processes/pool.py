"""The pool: workers are started when there is something to do and reused until the job ends; a dead one is replaced."""

from __future__ import annotations

import asyncio
import os

from benchflow_core.contracts import Capacity, ExecutorContext, Hear, ItemResult, PlanItem
from benchflow_core.errors import ConfigurationError
from benchflow_executor_processes.gateways import GatewayServer
from benchflow_executor_processes.worker_process import WorkerProcess

__all__ = ["ProcessPool"]


class ProcessPool:
    """Gives each item to the worker that has the fewest."""

    def __init__(self, context: ExecutorContext) -> None:
        self._env = dict(context.env)
        self._size = _size(context)
        self._gateways = GatewayServer(context.gateway) if context.gateway is not None else None
        self._workers: list[WorkerProcess] = []
        self._starting = asyncio.Lock()

    def capacity(self) -> Capacity | None:
        return None

    async def run(self, item: PlanItem, hear: Hear) -> ItemResult:
        async with self._starting:
            worker = await self._choose()
        return await worker.run(item, hear)  # which counts it at once, before the next one chooses

    async def close(self) -> None:
        workers, self._workers = self._workers, []
        await asyncio.gather(*(worker.close() for worker in workers))
        if self._gateways is not None:
            await self._gateways.close()

    async def _choose(self) -> WorkerProcess:
        for dead in [worker for worker in self._workers if not worker.alive]:
            self._workers.remove(dead)
            await dead.close()
        idle = next((worker for worker in self._workers if not worker.running), None)
        if idle is not None:
            return idle
        if len(self._workers) < self._size:
            address = await self._gateways.address() if self._gateways is not None else None
            self._workers.append(await WorkerProcess.start(self._env, gateways=address))
            return self._workers[-1]
        return min(self._workers, key=lambda worker: worker.running)


def _size(context: ExecutorContext) -> int:
    text = context.options.get("workers")
    if text is None:
        cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, min(cpus, context.concurrency or cpus))
    if not text.isdigit() or int(text) < 1:
        raise ConfigurationError(f"executor option workers={text}: expected a number of processes, at least 1.")
    return int(text)
