"""The program of a service, kept running as its container would: output to a bounded log, ends noticed, restarts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from benchflow_core.contracts.sandboxes import ExecResult, Process
from benchflow_core.errors import BenchflowError

__all__ = ["ProgramHost", "ServiceProgram"]

_LOG_BYTES = 256 * 1024
_RESTARTS = 20


class ProgramHost(Protocol):
    """What a program needs of the container it runs in."""

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> Process: ...

    async def exec(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        timeout: float | None = None,
    ) -> ExecResult: ...


class ServiceProgram:
    """Started with `start`; `ended` has the exit code once it will not be started again."""

    def __init__(
        self,
        place: ProgramHost,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        restart: bool = False,
    ) -> None:
        self._spawn: Callable[[], Awaitable[Process]] = lambda: place.spawn(argv, cwd=cwd, env=env, user=user)
        self._restart = restart
        self._log = bytearray()
        self._task: asyncio.Task[None] | None = None
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def start(self) -> None:
        """Returns once the program was started for the first time."""
        self._task = asyncio.create_task(self._keep(await self._spawn()))

    def log(self) -> bytes:
        return bytes(self._log)

    async def close(self) -> None:
        """Stop watching. The program itself ends with its container."""
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if not self.ended.done():
            self.ended.cancel()

    async def _keep(self, process: Process) -> None:
        code = -1
        try:
            for attempt in range(_RESTARTS + 1):
                code = await self._follow(process)
                if not self._restart or attempt == _RESTARTS:
                    break
                await asyncio.sleep(min(0.1 * 2**attempt, 10.0))
                process = await self._spawn()
        except (BenchflowError, OSError) as error:  # the container went away under it
            self._keep_bytes(f"\n{error}\n".encode())
        finally:
            if not self.ended.done():
                self.ended.set_result(code)

    async def _follow(self, process: Process) -> int:
        await asyncio.gather(self._drain(process.read), self._drain(process.read_stderr))
        return await process.wait()

    async def _drain(self, read: Callable[[], Awaitable[bytes]]) -> None:
        while data := await read():
            self._keep_bytes(data)

    def _keep_bytes(self, data: bytes) -> None:
        self._log += data
        if len(self._log) > _LOG_BYTES:
            del self._log[: len(self._log) - _LOG_BYTES]
