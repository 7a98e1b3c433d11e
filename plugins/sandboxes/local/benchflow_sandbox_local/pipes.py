"""Pipes to processes in a box, without a transport: a descriptor, the event loop, and as little as possible between."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import sys

from benchflow_core.errors import TransportError

__all__ = ["Collector", "ReadEnd", "WriteEnd", "pipe_in", "pipe_out"]

_CHUNK = 262144


def pipe_in() -> tuple[int, WriteEnd]:
    """For standard input: the child's end, and ours."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    return read, WriteEnd(write)


def pipe_out() -> tuple[int, int]:
    """For an output: the child's end, and ours (a plain descriptor, not blocking)."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    return write, read


class ReadEnd:
    """Reads on demand: what is not asked for stays in the pipe and holds the writer up."""

    def __init__(self, fd: int) -> None:
        self._fd: int | None = fd
        self._loop = asyncio.get_running_loop()
        self._lock = asyncio.Lock()

    async def read(self, limit: int) -> bytes:
        async with self._lock:
            while self._fd is not None:
                try:
                    data = os.read(self._fd, limit)
                except BlockingIOError:
                    await self._ready()
                    continue
                except OSError:
                    data = b""
                if not data:
                    self.close()
                return data
            return b""

    async def _ready(self) -> None:
        fd = self._fd
        if fd is None:
            return
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiter = waiter
        self._loop.add_reader(fd, _wake, waiter)
        try:
            await waiter
        finally:
            self._loop.remove_reader(fd)

    _waiter: asyncio.Future[None] | None = None

    def close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            self._loop.remove_reader(fd)
            os.close(fd)
            if self._waiter is not None:
                _wake(self._waiter)


class WriteEnd:
    """Writes with back-pressure."""

    def __init__(self, fd: int) -> None:
        self._fd: int | None = fd
        self._loop = asyncio.get_running_loop()
        self._lock = asyncio.Lock()
        self._waiter: asyncio.Future[None] | None = None

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        async with self._lock:
            while view:
                if self._fd is None:
                    raise TransportError("The process's standard input is closed.")
                try:
                    view = view[os.write(self._fd, view[:_CHUNK]) :]
                except BlockingIOError:
                    await self._ready()
                except OSError as error:
                    self.close()
                    raise TransportError("The process no longer reads its standard input.") from error

    async def _ready(self) -> None:
        fd = self._fd
        if fd is None:
            return
        self._waiter = waiter = self._loop.create_future()
        self._loop.add_writer(fd, _wake, waiter)
        try:
            await waiter
        finally:
            if self._fd is not None:
                self._loop.remove_writer(fd)

    def close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            self._loop.remove_writer(fd)
            os.close(fd)
            if self._waiter is not None:
                _wake(self._waiter)


class Collector:
    """Reads an output as it comes, keeps head and tail up to a limit, and drops the middle."""

    def __init__(self, fd: int, limit: int) -> None:
        self._fd: int | None = fd
        self._loop = asyncio.get_running_loop()
        self._head_limit = (limit + 1) // 2
        self._tail_limit = limit - self._head_limit
        self._head, self._tail = bytearray(), bytearray()
        self.truncated = False
        self._discard = False
        self._loop.add_reader(fd, self._readable)

    def _readable(self) -> None:
        if self._fd is None:
            return
        try:
            data = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
        elif not self._discard:
            self._keep(data)

    def _keep(self, data: bytes) -> None:
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > self._tail_limit:
            self.truncated = True
            del self._tail[: len(self._tail) - self._tail_limit]

    @property
    def open(self) -> bool:
        return self._fd is not None

    def finish(self) -> bytes:
        """What has been written up to now. Whoever still holds the other end goes on writing, into nothing."""
        left = _capacity(self._fd) if self._fd is not None else 0
        while self._fd is not None and left > 0:  # no more than the pipe holds: a busy writer must not keep us
            try:
                data = os.read(self._fd, left)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self.close()
            left -= len(data)
            self._keep(data)
        self._discard = True
        result = bytes(self._head + self._tail)
        self._head, self._tail = bytearray(), bytearray()
        return result

    def close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            self._loop.remove_reader(fd)
            with contextlib.suppress(OSError):
                os.close(fd)


def _capacity(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ) if sys.platform == "linux" else _CHUNK


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
