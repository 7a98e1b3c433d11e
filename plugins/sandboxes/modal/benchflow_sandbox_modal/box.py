"""One sandbox of Modal's, reached through the standard streams of one command in it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final

import modal
from benchflow_boxkit import package
from benchflow_boxkit.failures import Missing
from benchflow_boxkit.machines import CloudMachine
from modal.stream_type import StreamType

from benchflow_core.errors import BenchflowError, CapabilityMissing, InfrastructureError, TransportError
from benchflow_sandbox_modal.failures import translated

__all__ = ["ModalMachine", "entrypoint"]

_WATCH: Final = """
import os, select, signal
while select.select([0], [], [], {seconds})[0]:
    if not os.read(0, 4096):
        signal.pause()
"""
_CHUNK: Final = 1 << 20


def entrypoint(idle_seconds: float) -> tuple[str, ...]:
    """The box's main process: ends, and the box with it, when its host has not been heard of for so long.

    Where it gets no standard input at all, the box's own time limit is what remains.
    """
    return (*package.ATTACH[:-1], _WATCH.format(seconds=idle_seconds))


class ModalMachine(CloudMachine):
    def __init__(self, sandbox: modal.Sandbox, notices: tuple[str, ...], idle_seconds: float) -> None:
        super().__init__(notices, idle_seconds / 3)
        self._sandbox = sandbox

    @property
    def id(self) -> str:
        return str(self._sandbox.object_id)

    async def _keep(self) -> bool:
        with translated("the box cannot be kept"):
            self._sandbox.stdin.write(b".")
            await self._sandbox.stdin.drain.aio()
        return True

    async def _attach(self) -> Streams:
        with translated(f"no command in box {self.id}"):
            return Streams(await self._sandbox.exec.aio(*package.ATTACH, text=False, stderr=StreamType.DEVNULL))

    async def _runs(self) -> bool:
        with translated("the box cannot be looked up"):
            return await self._sandbox.poll.aio() is None

    async def _set_public(self, public: bool) -> None:
        allowed: list[str] | None = None if public else []
        try:
            with translated("the network cannot be changed"):
                await self._sandbox._experimental_set_outbound_network_policy.aio(outbound_cidr_allowlist=allowed)
        except AttributeError as error:
            raise CapabilityMissing("This version of Modal's SDK cannot change a running box's network.") from error

    async def _remove(self) -> None:
        try:
            with translated(f"box {self.id} cannot be removed"):
                await self._sandbox.terminate.aio()
        except Missing:
            pass
        with contextlib.suppress(Exception):
            await self._sandbox.detach.aio()


class Streams:
    """A command's standard streams as one. The SDK reads on by itself where a stream breaks."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self._parts = process.stdout.__aiter__()
        self._rest = b""
        self._ended = False
        self._reading: asyncio.Task[bytes | None] | None = None

    async def read(self, limit: int = 65536) -> bytes:
        while not self._rest:
            if self._ended:
                return b""
            if self._reading is None:
                self._reading = asyncio.ensure_future(self._next())
            # Not cancelled with us: what the SDK then says of a box that is gone would be told to nobody.
            found = await asyncio.shield(self._reading)
            self._reading = None
            self._ended, self._rest = self._ended or found is None, found or b""
        data, self._rest = self._rest[:limit], self._rest[limit:]
        return data

    async def _next(self) -> bytes | None:
        """Nothing: it has ended, in whatever way."""
        try:
            with translated("the stream is broken"):
                return bytes(await self._parts.__anext__())
        except (StopAsyncIteration, Missing, BenchflowError):
            return None

    async def write(self, data: bytes) -> None:
        try:
            with translated("the stream is closed"):
                for at in range(0, len(data), _CHUNK):
                    self._process.stdin.write(data[at : at + _CHUNK])
                    await self._process.stdin.drain.aio()
        except (Missing, InfrastructureError) as error:
            raise TransportError(str(error)) from error

    async def close(self) -> None:
        """The command ends when another one takes its place, or with the box."""
        self._ended = True
        if self._reading is None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(5):
                    await self._parts.aclose()
