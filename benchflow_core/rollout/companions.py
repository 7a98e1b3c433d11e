"""Processes that an agent needs beside itself: started before it, drained, waited for, and ended with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchflow_core.contracts.agents import AgentContext, Companion
from benchflow_core.contracts.logs import CappedLog
from benchflow_core.contracts.sandboxes import Process, Sandbox
from benchflow_core.errors import AgentError

__all__ = ["RunningCompanion", "start_companion"]

_PROBE_EVERY = 0.25
_PROBE_LIMIT = 30.0


class RunningCompanion:
    """Nobody reads what it prints, so it goes to a log: a full pipe would stop it."""

    def __init__(self, name: str, process: Process, log: Path | None) -> None:
        self._name, self._process, self._log = name, process, CappedLog(log)
        self._ended = asyncio.create_task(process.wait())
        self._drains = [asyncio.create_task(self._drain(read)) for read in (process.read, process.read_stderr)]

    async def _drain(self, read: Callable[[], Awaitable[bytes]]) -> None:
        while data := await read():
            self._log.write(data)

    async def ready(self, probe: Callable[[], Awaitable[int]], limit: float) -> None:
        """Until the probe exits 0. A companion that ends before that is not waited for."""
        try:
            async with asyncio.timeout(limit):
                while await probe():
                    if self._ended.done():
                        await asyncio.gather(*self._drains, return_exceptions=True)
                        code = self._ended.result()
                        raise self._failed(f"'{self._name}' ended with exit code {code} before it was ready")
                    await asyncio.sleep(_PROBE_EVERY)
        except TimeoutError as error:
            raise self._failed(f"'{self._name}' was not ready within {limit:.0f} s") from error

    def _failed(self, what: str) -> AgentError:
        tail = self._log.excerpt()
        last = tail.splitlines()[-1][:300] if tail else "it printed nothing"
        return AgentError(f"{what}: {last}.", details={"companion": self._name, "output_tail": tail})

    async def kill(self) -> None:
        try:
            await self._process.kill()
        finally:
            for task in (*self._drains, self._ended):
                task.cancel()
            await asyncio.gather(*self._drains, self._ended, return_exceptions=True)
            self._log.close()


async def start_companion(
    sandbox: Sandbox, companion: Companion, context: AgentContext, log: Path | None
) -> RunningCompanion:
    """Started and ready; when it does not get there, nothing of it is left."""
    cwd, user, env = context.workdir, context.user, {**context.env, **companion.env}
    process = await sandbox.spawn(companion.argv, cwd=cwd, env=env, user=user)
    running = RunningCompanion(companion.name, process, log)

    async def probe() -> int:
        done = await sandbox.exec(companion.ready, cwd=cwd, env=env, user=user, timeout=_PROBE_LIMIT)
        return done.exit_code or int(done.timed_out)

    try:
        if companion.ready:
            await running.ready(probe, companion.ready_timeout)
    except BaseException:
        await running.kill()
        raise
    return running
