"""One service of a world while it runs: drained, watched, stopped."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from benchflow_core.contracts import CappedLog, Process, Sandbox
from benchflow_core.errors import BenchflowError, InfrastructureError

__all__ = ["RunningService"]

_GRACE = 5.0
"""Seconds for a service to end after it was asked to."""


class RunningService:
    """What it prints goes to a log: it is shown when the service fails, and a full pipe would stop it."""

    def __init__(self, name: str, process: Process, log: Path, died: Callable[[RunningService], None]) -> None:
        self.name, self.log_path = name, log
        self._process, self._log = process, CappedLog(log)
        self._died = died
        self._wanted = True
        self._drains = [asyncio.create_task(self._drain(read)) for read in (process.read, process.read_stderr)]
        self._end = asyncio.create_task(self._watch())
        self.exit_code: int | None = None

    @classmethod
    async def start(
        cls,
        box: Sandbox,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        user: str | None,
        log: Path,
        died: Callable[[RunningService], None],
    ) -> RunningService:
        log.parent.mkdir(parents=True, exist_ok=True)
        return cls(name, await box.spawn(argv, env=env, user=user), log, died)

    @property
    def pid(self) -> int | None:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return not self._end.done()

    async def _drain(self, read: Callable[[], Awaitable[bytes]]) -> None:
        with contextlib.suppress(BenchflowError):
            while data := await read():
                self._log.write(data)

    async def _watch(self) -> None:
        try:
            self.exit_code = await self._process.wait()
        except BenchflowError:
            self.exit_code = -1
        if self._wanted:
            await asyncio.wait(self._drains, timeout=2)
            self._died(self)

    def failure(self, when: str) -> InfrastructureError:
        tail = self._log.excerpt()
        last = tail.splitlines()[-1][:300] if tail else "it printed nothing"
        return InfrastructureError(
            f"service '{self.name}' ended with exit code {self.exit_code} {when}: {last}",
            details={"service": self.name, "exit_code": self.exit_code, "log": tail},
        )

    def excerpt(self) -> str:
        return self._log.excerpt()

    async def stop(self, box: Sandbox | None = None) -> None:
        """Asked first where the box is still there, then ended. Never raises."""
        self._wanted = False
        if box is not None and self.pid is not None and self.alive:
            with contextlib.suppress(BenchflowError, OSError):
                await box.exec(("kill", "-TERM", str(self.pid)), cwd="/", timeout=10)
                await asyncio.wait({self._end}, timeout=_GRACE)
        with contextlib.suppress(BenchflowError, OSError):
            await self._process.kill()
        for task in (*self._drains, self._end):
            task.cancel()
        await asyncio.gather(*self._drains, self._end, return_exceptions=True)
        self._log.close()
