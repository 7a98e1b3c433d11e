"""Streams made from what a vendor's SDK hands over in calls."""

from __future__ import annotations

import asyncio
import contextlib
from abc import abstractmethod
from collections import deque
from collections.abc import Awaitable
from typing import Final

from benchflow_boxkit.failures import Missing
from benchflow_core.errors import InfrastructureError, TransportError

__all__ = ["Arrivals", "Terminal"]

_AHEAD: Final = 4 << 20


class Arrivals:
    """Bytes in the order they came. What is not read yet holds their sender up."""

    def __init__(self) -> None:
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._ready, self._room = asyncio.Event(), asyncio.Event()
        self.ended = False

    async def take(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        self._ready.set()
        while self._size > _AHEAD and not self.ended:
            self._room.clear()
            await self._room.wait()

    def end(self) -> None:
        """Nothing more will come, and nobody need wait for room."""
        self.ended = True
        self._ready.set()
        self._room.set()

    async def read(self, limit: int = 65536) -> bytes:
        while not self._parts:
            if self.ended:
                return b""
            self._ready.clear()
            await self._ready.wait()
        part = self._parts.popleft()
        if len(part) > limit:
            self._parts.appendleft(part[limit:])
            part = part[:limit]
        self._size -= len(part)
        self._room.set()
        return part


class Terminal(Arrivals):
    """A vendor's terminal as a byte stream. Our attach command sets it to raw mode, so bytes pass unchanged."""

    def __init__(self) -> None:
        super().__init__()
        self._watching: asyncio.Task[None] | None = None

    def watch(self, ending: Awaitable[object]) -> None:
        """End the stream when `ending` ends."""

        async def end() -> None:
            with contextlib.suppress(Exception):
                await ending
            self.end()

        self._watching = asyncio.ensure_future(end())

    @abstractmethod
    async def _send(self, data: bytes) -> None:
        """Send input; raises `Missing` or an `InfrastructureError`."""

    @abstractmethod
    async def _disconnect(self) -> None:
        """Let go of the vendor's terminal, as far as it was opened."""

    async def write(self, data: bytes) -> None:
        try:
            await self._send(data)
        except (Missing, InfrastructureError) as error:
            self.end()  # input that is lost ends the connection, although output may still come
            raise TransportError(str(error)) from error

    async def close(self) -> None:
        self.end()
        with contextlib.suppress(Exception):
            await self._disconnect()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
