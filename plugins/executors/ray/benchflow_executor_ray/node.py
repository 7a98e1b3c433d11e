"""What lives on a node: an actor that keeps one worker process and passes lines between it and the job."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from benchflow_executor_processes.worker_process import WorkerProcess

from benchflow_core.contracts import PlanItem
from benchflow_core.errors import BenchflowError

__all__ = ["NodeWorker"]

_OF_THE_NODE: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD", "TMPDIR", "HOSTNAME"),
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "VIRTUAL_ENV", "PYTHONHOME"),
)
_FAMILIES: Final = ("RAY_", "XDG_", "SSH_", "SLURM_")
"""Variables that say something about a machine, not about the job."""


class NodeWorker:
    """One per node. All items there share its worker, and so one gateway and one set of images."""

    def __init__(self, env: Mapping[str, str]) -> None:
        own = {k for k in env if k in _OF_THE_NODE or k.startswith(_FAMILIES)}
        self._env = {**os.environ, **{k: v for k, v in env.items() if k not in own}}
        self._worker: WorkerProcess | None = None
        self._starting = asyncio.Lock()
        self._running: dict[str, asyncio.Task[Any]] = {}

    async def ready(self) -> bool:
        return True

    async def run(self, text: str) -> AsyncIterator[str]:
        """Every line about the item; the last says how it ended."""
        item = PlanItem.from_json(json.loads(text))
        async with self._starting:
            if self._worker is None or not self._worker.alive:
                self._worker = await WorkerProcess.start(self._env)
        said: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue()
        work = self._running[item.id] = asyncio.create_task(self._worker.run(item, said.put_nowait))
        work.add_done_callback(lambda _: said.put_nowait(None))
        try:
            while (message := await said.get()) is not None:
                yield json.dumps(message)  # `alive` at least, every few seconds
            yield json.dumps(_ending(work))
        finally:
            del self._running[item.id]

    async def cancel(self, item: str, reason: str) -> None:
        if item in self._running:
            self._running[item].cancel(reason)

    async def close(self) -> None:
        if self._worker is not None:
            await self._worker.close()


def _ending(work: asyncio.Task[Any]) -> dict[str, Any]:
    if work.cancelled():
        return {"cancelled": True}
    error = work.exception()
    if isinstance(error, BenchflowError):
        return {"failed": error.to_json()}
    if error is not None:
        raise error
    result = work.result()
    return {"result": {"rollout_dir": result.rollout_dir, "error": result.error}}
