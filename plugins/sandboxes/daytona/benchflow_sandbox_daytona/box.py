"""One sandbox of Daytona's, reached through a terminal that runs our attach command."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shlex
from typing import Final

from benchflow_boxkit import package
from benchflow_boxkit.arrivals import Terminal
from benchflow_boxkit.machines import CloudMachine
from daytona import AsyncSandbox
from daytona.handle.async_pty_handle import AsyncPtyHandle

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

    async def _attach(self) -> DaytonaTerminal:
        stream = DaytonaTerminal()
        try:
            with translated(f"no terminal in box {self.id}"):
                name = f"benchflow-{secrets.token_hex(6)}"
                stream.handle = await self._sandbox.process.create_pty_session(name, stream.take, envs={"TERM": "dumb"})
                await stream.handle.send_input(_COMMAND)
        except BaseException:
            await stream.close()
            raise
        stream.watch(stream.handle.wait())
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


class DaytonaTerminal(Terminal):
    """A terminal's websocket."""

    handle: AsyncPtyHandle

    async def _send(self, data: bytes) -> None:
        with translated("the terminal is closed"):
            await self.handle.send_input(data)

    async def _disconnect(self) -> None:
        if hasattr(self, "handle"):
            await self.handle.disconnect()
