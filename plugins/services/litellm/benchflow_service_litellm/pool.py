"""The LiteLLM processes of a job."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from benchflow_service_litellm.environment import LiteLLMEnvironment
from benchflow_service_litellm.settings import proxy_config, proxy_env, workers_for
from benchflow_service_litellm.worker import LiteLLMWorker

__all__ = ["WorkerPool"]


class WorkerPool:
    """Workers sized to the job. The first healthy one is enough to begin with."""

    def __init__(self, folder: Path, env: Mapping[str, str], concurrency: int, options: Mapping[str, str]) -> None:
        self.secret = f"sk-proxy-{secrets.token_urlsafe(32)}"
        self.workers: list[LiteLLMWorker] = []
        self._folder, self._env = folder, env
        self._count = workers_for(concurrency, os.cpu_count() or 1, options.get("workers"))

    async def start(self, back: int) -> None:
        """Returns when a worker is healthy."""
        python = await asyncio.to_thread(LiteLLMEnvironment.of(self._env).ensure, logging.getLogger(__name__).warning)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        config = self._folder / "config.yaml"
        config.write_text(json.dumps(proxy_config(back, self._env), indent=1))
        env = proxy_env(self._env, self._folder, self.secret)
        self.workers = [
            LiteLLMWorker(number, python, config, env, self._folder / f"litellm-{number}.log")
            for number in range(1, self._count + 1)
        ]
        await self._healthy()

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[LiteLLMWorker]:
        """The least busy healthy one, for one request. Where it turns out to be gone, ask again: another one is."""
        worker = await self._healthy()
        worker.busy += 1
        try:
            yield worker
        finally:
            worker.busy -= 1

    async def close(self) -> None:
        await asyncio.gather(*(worker.close() for worker in self.workers))

    async def _healthy(self) -> LiteLLMWorker:
        while True:
            healthy = [worker for worker in self.workers if worker.healthy]
            if healthy:
                return min(healthy, key=lambda worker: worker.busy)
            waits = [asyncio.create_task(worker.healthy_again()) for worker in self.workers]
            try:
                done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                if len(done) == len(waits):
                    for wait in done:
                        wait.result()
                elif all(wait.exception() for wait in done):
                    await asyncio.wait(set(waits) - done, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
                await asyncio.gather(*waits, return_exceptions=True)
