"""A duplex process in a box."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from benchflow_core.errors import SandboxLost
from benchflow_sandbox_local.pipes import ReadEnd, WriteEnd

__all__ = ["LocalProcess"]


class LocalProcess:
    def __init__(
        self,
        pid: int,
        stdin: WriteEnd,
        stdout: ReadEnd,
        stderr: ReadEnd,
        exited: asyncio.Future[int],
        end_tree: Callable[[], Awaitable[None]],
    ) -> None:
        self._pid, self._stdin, self._stdout, self._stderr = pid, stdin, stdout, stderr
        self._exited, self._end_tree = exited, end_tree
        self._killed: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        return self._pid

    async def read(self, limit: int = 65536) -> bytes:
        return await self._stdout.read(limit)

    async def read_stderr(self, limit: int = 65536) -> bytes:
        return await self._stderr.read(limit)

    async def write(self, data: bytes) -> None:
        await self._stdin.write(data)

    async def close_stdin(self) -> None:
        self._stdin.close()

    async def wait(self) -> int:
        return await asyncio.shield(self._exited)

    async def kill(self) -> None:
        if self._killed is None:
            self._killed = asyncio.ensure_future(self._kill())
        await asyncio.shield(self._killed)

    async def _kill(self) -> None:
        with contextlib.suppress(SandboxLost):
            await self._end_tree()
            await asyncio.shield(self._exited)
        self._stdin.close()

    def abandon(self) -> None:
        """The box is gone: let go of what is left of it here."""
        for end in (self._stdin, self._stdout, self._stderr):
            end.close()
