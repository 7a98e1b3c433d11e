"""One sandbox of Daytona's, reached through a terminal that runs our attach command."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shlex
from typing import Final

from benchflow_boxkit import package
from benchflow_boxkit.arrivals import Arrivals
from benchflow_boxkit.failures import Missing
from benchflow_boxkit.machines import CloudMachine
from daytona import AsyncSandbox
from daytona.handle.async_pty_handle import AsyncPtyHandle

from benchflow_core.errors import InfrastructureError, TransportError
from benchflow_sandbox_daytona.failures import translated

__all__ = ["DaytonaMachine"]

_COMMAND: Final = f"exec {shlex.join(package.ATTACH)}\n"
_STARTED: Final = ("started", "starting", "creating", "restoring", "unknown")


class DaytonaMachine(CloudMachine):
    def __init__(self, sandbox: AsyncSandbox, notices: tuple[str, ...], auto_stop_minutes: int) -> None:
        super().__init__(notices, auto_stop_minutes * 60 / 3)
        self._sandbox = sandbox

    @property
    def id(self) -> str:
        return str(self._sandbox.id)

    async def _keep(self) -> bool:
        """An open terminal is no activity for Daytona."""
        with translated("the box cannot be kept"):
            await self._sandbox.refresh_activity()
        return True

    async def _attach(self) -> Terminal:
        stream = Terminal()
        try:
            with translated(f"no terminal in box {self.id}"):
                name = f"benchflow-{secrets.token_hex(6)}"
                stream.handle = await self._sandbox.process.create_pty_session(name, stream.take, envs={"TERM": "dumb"})
                await stream.handle.send_input(_COMMAND)
        except BaseException:
            await stream.close()
            raise
        stream.watch()
        return stream

    async def _runs(self) -> bool:
        with translated("the box cannot be looked up"):
            await self._sandbox.refresh_data()
        state = self._sandbox.state
        return state is None or str(state.value) in _STARTED

    async def _set_public(self, public: bool) -> None:
        with translated("the network cannot be changed"):
            await self._sandbox.update_network_settings(network_block_all=not public)

    async def logs(self, tail: int) -> bytes:
        """Daytona keeps what the image's entry point printed."""
        with contextlib.suppress(Exception):
            async with asyncio.timeout(10):
                found = await self._sandbox.process.get_entrypoint_logs()
            return str(found.output or "").encode()[-tail:]
        return b""

    async def _remove(self) -> None:
        with translated(f"box {self.id} cannot be removed"):
            await self._sandbox.delete(timeout=60)


class Terminal(Arrivals):
    """A terminal's websocket as a byte stream. Once our command has it in raw mode, bytes go through as they are."""

    handle: AsyncPtyHandle

    def __init__(self) -> None:
        super().__init__()
        self._watching: asyncio.Task[None] | None = None

    def watch(self) -> None:
        async def end() -> None:
            with contextlib.suppress(Exception):
                await self.handle.wait()
            self.end()

        self._watching = asyncio.ensure_future(end())

    async def write(self, data: bytes) -> None:
        try:
            with translated("the terminal is closed"):
                await self.handle.send_input(data)
        except (Missing, InfrastructureError) as error:
            raise TransportError(str(error)) from error

    async def close(self) -> None:
        self.end()
        if hasattr(self, "handle"):
            with contextlib.suppress(Exception):
                await self.handle.disconnect()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
