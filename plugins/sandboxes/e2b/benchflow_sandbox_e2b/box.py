"""One sandbox of E2B's, reached through a terminal that runs our attach command."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import time
from typing import Any, Final

from benchflow_boxkit import package
from benchflow_boxkit.arrivals import Terminal
from benchflow_boxkit.machines import CloudMachine
from e2b import AsyncSandbox
from e2b.sandbox.commands.command_handle import PtySize

from benchflow_sandbox_e2b.failures import translated

__all__ = ["E2BMachine"]

_COMMAND: Final = f"exec {shlex.join(package.ATTACH)}\n".encode()
_SIZE: Final = PtySize(rows=24, cols=200)


class E2BMachine(CloudMachine):
    def __init__(self, sandbox: AsyncSandbox, notices: tuple[str, ...], keep: int, ends: float) -> None:
        super().__init__(notices, keep / 3)
        self._sandbox, self._term, self._ends = sandbox, keep, ends

    @property
    def id(self) -> str:
        return str(self._sandbox.sandbox_id)

    @property
    def sandbox(self) -> AsyncSandbox:
        return self._sandbox

    async def _keep(self) -> bool:
        """Prolong the box by a few minutes, up to its own end: a box of a dead host ends soon."""
        left = self._ends - time.time()
        with translated("the box cannot be kept"):
            await self._sandbox.set_timeout(int(min(self._term, max(1, left))))
        return left > self._term

    async def _attach(self) -> E2BTerminal:
        """Open another terminal; the box kit's link sends again what the last one missed."""
        stream = E2BTerminal()
        try:
            with translated(f"no terminal in box {self.id}"):
                stream.handle = await self._sandbox.pty.create(
                    _SIZE, stream.take, user="root", cwd="/", envs={"TERM": "dumb"}, timeout=0
                )
                stream.typed = self._sandbox.pty.stream_input(stream.handle.pid, timeout=0)
                await stream.typed.send(_COMMAND)
        except BaseException:
            await stream.close()
            raise
        stream.watch_both()
        return stream

    async def _runs(self) -> bool:
        with translated("the box cannot be looked up"):
            await self._sandbox.get_info()
        return True

    async def _set_public(self, public: bool) -> None:
        with translated("the network cannot be changed"):
            await self._sandbox.update_network({"allow_internet_access": public})

    async def _remove(self) -> None:
        with translated(f"box {self.id} cannot be removed"):
            await self._sandbox.kill()


class E2BTerminal(Terminal):
    """A terminal whose output is one lasting answer and whose input is one lasting request."""

    handle: Any
    typed: Any

    def watch_both(self) -> None:
        self.watch(self.handle.wait())
        # The SDK reports failed input only at the next input; where its task can be seen, its end is the stream's.
        if isinstance(sending := getattr(self.typed, "_task", None), asyncio.Task):
            sending.add_done_callback(lambda _: self.end())

    async def _send(self, data: bytes) -> None:
        with translated("the terminal is closed"):
            await self.typed.send(data)

    async def _disconnect(self) -> None:
        if hasattr(self, "typed"):
            with contextlib.suppress(Exception):
                async with asyncio.timeout(2):
                    await self.typed.close()
        if hasattr(self, "handle"):
            await self.handle.disconnect()
