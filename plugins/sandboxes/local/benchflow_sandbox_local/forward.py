"""Connections across the wall: servers of the host shown inside a box, and servers of a box reached from outside."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

from benchflow_boxkit.proxy import Duplex, relay

from benchflow_core.contracts.sandboxes import HostEndpoint
from benchflow_core.errors import TransportError

__all__ = ["Forward", "SocketStream", "serve", "to_endpoint"]

_CHUNK = 65536


class SocketStream:
    """A `ByteStream` on a connected socket."""

    def __init__(self, fd: int) -> None:
        self._sock: socket.socket | None = socket.socket(fileno=fd)
        self._sock.setblocking(False)
        self._loop = asyncio.get_running_loop()

    async def read(self, limit: int = _CHUNK) -> bytes:
        if self._sock is None:
            return b""
        try:
            return await self._loop.sock_recv(self._sock, limit)
        except ConnectionError:
            return b""

    async def write(self, data: bytes) -> None:
        if self._sock is None:
            raise TransportError("The connection into the box is closed.")
        try:
            await self._loop.sock_sendall(self._sock, data)
        except OSError as error:
            raise TransportError("The connection into the box broke.") from error

    async def close(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None


class Forward:
    """A listener inside a box whose connections go to a server outside."""

    def __init__(self, server: asyncio.Server, port: int, tasks: set[asyncio.Task[None]]) -> None:
        self._server, self.port, self._tasks = server, port, tasks

    def drop(self) -> None:
        """End the connections there are; new ones are still taken."""
        for task in list(self._tasks):
            task.cancel()

    async def close(self) -> None:
        self._server.close()
        tasks = list(self._tasks)
        self.drop()
        await asyncio.gather(*tasks, return_exceptions=True)


Handler = Callable[[Duplex], Awaitable[None]]


async def serve(fd: int, port: int, handler: Handler) -> Forward:
    """Accept on a listening descriptor that was made inside a box."""
    tasks: set[asyncio.Task[None]] = set()

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await handler(_Accepted(reader, writer))
        finally:
            tasks.discard(task)
            writer.close()

    listener = socket.socket(fileno=fd)
    try:
        listener.setblocking(False)
        server = await asyncio.start_server(accepted, sock=listener)
    except BaseException:
        listener.close()
        raise
    return Forward(server, port, tasks)


class _Accepted:
    """A connection of the box's, as handlers take it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self, limit: int = _CHUNK) -> bytes:
        return await self._reader.read(limit)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def write_eof(self) -> None:
        with contextlib.suppress(OSError):
            self._writer.write_eof()

    async def close(self) -> None:
        self._writer.close()


def to_endpoint(endpoint: HostEndpoint) -> Handler:
    async def handle(inside: Duplex) -> None:
        await relay(inside, await asyncio.open_connection(endpoint.host, endpoint.port))

    return handle
