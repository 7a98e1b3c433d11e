"""Servers of one box, reachable from another at the same port of its loopback.

Each connection is carried through this process: nothing else of the two boxes touches. A forward is there while it is
open. Two uses: what an agent left running, for the verifier; and a world's services, for agent and verifier.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

from benchflow_core.contracts import ByteStream, HostEndpoint, Sandbox
from benchflow_core.errors import BenchflowError, CapabilityMissing, InfrastructureError

__all__ = ["forwarded"]

_MOST: Final = 64
_LINGER: Final = 5.0
"""Seconds for an answer after the asking side has closed."""


@contextlib.asynccontextmanager
async def forwarded(
    source: Sandbox, ports: Sequence[int], show: Callable[[HostEndpoint, int], Awaitable[str]]
) -> AsyncIterator[list[int]]:
    """Carry connections to `ports` of `source` from wherever `show` shows them, while it is open.

    Yields the ports that could be shown.
    """
    async with contextlib.AsyncExitStack() as stack:
        done = []
        for port in ports[:_MOST]:
            server = await stack.enter_async_context(_server(source, port))
            host, number = server.sockets[0].getsockname()[:2]
            with contextlib.suppress(OSError, InfrastructureError, CapabilityMissing):
                await show(HostEndpoint(host, number), port)
                done.append(port)
        yield done


@contextlib.asynccontextmanager
async def _server(source: Sandbox, port: int) -> AsyncIterator[asyncio.Server]:
    tasks: set[asyncio.Task[None]] = set()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, BenchflowError):
                await _carry(await source.dial(port), reader, writer)
        finally:
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A task of our own: Python 3.11 prints a traceback for one of the server's that is cancelled.
        task = asyncio.create_task(carry(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _carry(stream: ByteStream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    async def there() -> None:
        while data := await reader.read(65536):
            await stream.write(data)

    async def back() -> None:
        while data := await stream.read():
            writer.write(data)
            await writer.drain()

    asking, answering = asyncio.create_task(there()), asyncio.create_task(back())
    try:
        await asyncio.wait((asking, answering), return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            await asyncio.wait((answering,), timeout=_LINGER)
    finally:
        for task in (asking, answering):
            task.cancel()
        await asyncio.gather(asking, answering, return_exceptions=True)
        await stream.close()
