"""What a vendor's SDK hands over in calls, as something that can be read."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

__all__ = ["Arrivals"]

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
