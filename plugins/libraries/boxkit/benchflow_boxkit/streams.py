"""Our ends of the streams that a box's first process carries."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from benchflow_boxkit.inside import wire
from benchflow_core.errors import TransportError

__all__ = ["Collector", "Inbound", "Outbound", "Reader"]

Send = Callable[[bytes], None]


class Reader(Protocol):
    """What takes the bytes of a stream."""

    def data(self, body: bytes) -> None: ...

    def end(self) -> None: ...


class Inbound:
    """From the box, read on demand: what is not asked for holds its writer up."""

    def __init__(self, number: int, send: Send) -> None:
        self.number, self._send = number, send
        self._parts: deque[bytes] = deque()
        self._owed = 0
        self._ready = asyncio.Event()
        self.ended = False

    def data(self, body: bytes) -> None:
        if not self.ended:
            self._parts.append(body)
            self._ready.set()

    def end(self) -> None:
        self.ended = True
        self._ready.set()

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
        self._owed += len(part)
        if not self.ended and self._owed >= wire.WINDOW // 4:
            self._send(wire.credit(self.number, self._owed))
            self._owed = 0
        return part

    def drop(self) -> None:
        """No more is wanted."""
        if not self.ended:
            self._send(wire.frame(wire.CLOSE, self.number))
        self.end()


class Collector:
    """Takes an output as it comes, keeps head and tail up to a limit, and drops the middle."""

    def __init__(self, number: int, send: Send, limit: int) -> None:
        self.number, self._send = number, send
        self._head_limit = (limit + 1) // 2
        self._tail_limit = limit - self._head_limit
        self._head, self._tail = bytearray(), bytearray()
        self._owed = 0
        self.truncated = False

    def data(self, body: bytes) -> None:
        room = self._head_limit - len(self._head)
        self._head += body[:room] if room > 0 else b""
        self._tail += body[room:] if room > 0 else body
        if len(self._tail) > self._tail_limit:
            self.truncated = True
            del self._tail[: len(self._tail) - self._tail_limit]
        self._owed += len(body)
        if self._owed >= wire.WINDOW // 4:
            self._send(wire.credit(self.number, self._owed))
            self._owed = 0

    def end(self) -> None:
        """Nothing waits for it: the command's own end counts."""

    def result(self) -> bytes:
        return bytes(self._head + self._tail)


class Outbound:
    """To the box, no more than it has room for."""

    def __init__(self, number: int, send: Send, drain: Callable[[], asyncio.Future[None]]) -> None:
        self.number, self._send, self._drain = number, send, drain
        self._credit = wire.WINDOW
        self._room = asyncio.Event()
        self._lock = asyncio.Lock()
        self.broken = False
        self._ended = False

    def give(self, count: int) -> None:
        self._credit += count
        self._room.set()

    def fail(self) -> None:
        """The other side takes no more."""
        self.broken = True
        self._room.set()

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        async with self._lock:
            while view:
                if self.broken or self._ended:
                    raise TransportError("Nobody in the box reads this any more.")
                if self._credit <= 0:
                    self._room.clear()
                    await self._room.wait()
                    continue
                count = min(len(view), self._credit, wire.CHUNK)
                self._credit -= count
                self._send(wire.frame(wire.DATA, self.number, bytes(view[:count])))
                view = view[count:]
                await self._drain()

    def end(self) -> None:
        if not self._ended and not self.broken:
            self._send(wire.frame(wire.END, self.number))
        self._ended = True
        self._room.set()
