"""The line to a supervisor on this host: one end of a Unix socket, over which descriptors can be passed as well."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Final

from benchflow_boxkit.inside import passing

__all__ = ["SocketLine"]

_AHEAD: Final = 1 << 18


class SocketLine:
    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._queue: deque[tuple[memoryview, Sequence[int]]] = deque()
        self._size = 0
        self._room = asyncio.Event()
        self._open = True
        self.failure = ""

    def send(self, data: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send, now or as soon as there is room. Closes the descriptors, whatever happens."""
        if not self._open:
            passing.close(descriptors)
            return
        self._queue.append((memoryview(data), descriptors))
        self._size += len(data)
        if len(self._queue) == 1:
            self._flush()

    def _flush(self) -> None:
        while self._queue:
            data, descriptors = self._queue[0]
            try:
                sent = socket.send_fds(self._sock, [data], descriptors) if descriptors else self._sock.send(data)
            except BlockingIOError:
                self._loop.add_writer(self._sock, self._flush)
                return
            except OSError as error:
                if self._open and passing.must_wait(error):
                    self._loop.remove_writer(self._sock)
                    self._loop.call_later(passing.PAUSE, self._flush)
                else:
                    self._shut(str(error))
                return
            passing.close(descriptors)
            self._size -= sent
            if sent < len(data):
                self._queue[0] = data[sent:], ()
            else:
                self._queue.popleft()
        self._loop.remove_writer(self._sock)
        self._room.set()

    async def drain(self) -> None:
        while self._size > _AHEAD and self._open:
            self._room.clear()
            await self._room.wait()

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            with contextlib.suppress(OSError):
                while data := await self._loop.sock_recv(self._sock, 1 << 18):
                    yield data
        finally:
            self._shut("")

    def _shut(self, failure: str) -> None:
        """Let go of the socket, which the other side notices, and of what is still to be sent."""
        if not self._open:
            return
        self._open, self.failure = False, failure
        self._loop.remove_writer(self._sock)
        for _, descriptors in self._queue:
            passing.close(descriptors)
        self._queue.clear()
        self._size = 0
        self._room.set()
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    async def close(self) -> None:
        """Close the socket; a second call does nothing."""
        self._shut("")
        if self._sock.fileno() >= 0:
            self._loop.remove_reader(self._sock)
            self._sock.close()
