"""One sandbox of E2B's, reached through a terminal that runs our attach command."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import time
from typing import Any, Final

from benchflow_boxkit import package
from benchflow_boxkit.arrivals import Arrivals
from benchflow_boxkit.failures import Missing
from benchflow_boxkit.machines import CloudMachine
from e2b import AsyncSandbox
from e2b.sandbox.commands.command_handle import PtySize

from benchflow_core.errors import InfrastructureError, TransportError
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
        """A box lives a few minutes at a time: while this host lives, it asks for more, up to the box's own end."""
        left = self._ends - time.time()
        with translated("the box cannot be kept"):
            await self._sandbox.set_timeout(int(min(self._term, max(1, left))))
        return left > self._term

    async def _attach(self) -> Terminal:
        """Another terminal for each connection: what the last one missed, the box kit's link sends again."""
        stream = Terminal()
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
        stream.watch()
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


class Terminal(Arrivals):
    """A terminal as a byte stream: its output is one lasting answer, its input one lasting request."""

    handle: Any
    typed: Any

    def __init__(self) -> None:
        super().__init__()
        self._watching: asyncio.Task[None] | None = None

    def watch(self) -> None:
        async def end() -> None:
            with contextlib.suppress(Exception):
                await self.handle.wait()
            self.end()

        self._watching = asyncio.ensure_future(end())
        # The SDK tells of input that failed at the next input only; where its task can be seen, nobody waits for that.
        if isinstance(sending := getattr(self.typed, "_task", None), asyncio.Task):
            sending.add_done_callback(lambda _: self.end())

    async def write(self, data: bytes) -> None:
        try:
            with translated("the terminal is closed"):
                await self.typed.send(data)
        except (Missing, InfrastructureError) as error:
            self.end()  # input that is lost ends the connection, although output still comes
            raise TransportError(str(error)) from error

    async def close(self) -> None:
        self.end()
        for step in ("typed", "handle"):
            with contextlib.suppress(Exception):
                if step == "typed" and hasattr(self, "typed"):
                    async with asyncio.timeout(2):
                        await self.typed.close()
                elif step == "handle" and hasattr(self, "handle"):
                    await self.handle.disconnect()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
