"""Servers that the agent left running, reachable from the verifier's box at the same port of its loopback.

Each connection is carried through this process: nothing else of the two boxes touches. A forward is there before the
verifier starts and ends with it. A port that the tests serve themselves is left to them (`AuthorText.tests_serve`); a
verifier that listens on any other of these ports finds it taken, as it would in the agent's own box.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from benchflow_core.contracts.sandboxes import ByteStream, HostEndpoint, Sandbox
from benchflow_core.errors import BenchflowError, CapabilityMissing, InfrastructureError
from benchflow_core.gateway.tunnel import Tunnel

__all__ = ["forwarded"]

_MOST: Final = 64
_LINGER: Final = 5.0
"""Seconds for an answer after the asking side has closed."""


@contextlib.asynccontextmanager
async def forwarded(
    agent: Sandbox, verifier: Sandbox, ports: Sequence[int], runtimes: Mapping[str, str]
) -> AsyncIterator[list[int]]:
    """Carries connections to `ports` while it is open; yields those that could be."""
    async with contextlib.AsyncExitStack() as stack:
        done = []
        for port in ports[:_MOST]:
            server = await stack.enter_async_context(_server(agent, port))
            host, number = server.sockets[0].getsockname()[:2]
            endpoint = HostEndpoint(host, number)
            with contextlib.suppress(OSError, InfrastructureError, CapabilityMissing):
                try:
                    await verifier.expose_to_box(endpoint, port=port)
                except NotImplementedError:
                    tunnel = await Tunnel.open(verifier, endpoint, runtimes, port=port)
                    stack.push_async_callback(tunnel.close)
                done.append(port)
        yield done


@contextlib.asynccontextmanager
async def _server(agent: Sandbox, port: int) -> AsyncIterator[asyncio.Server]:
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with contextlib.suppress(OSError, BenchflowError):
                await _carry(await agent.dial(port), reader, writer)
        finally:
            tasks.discard(task)
            writer.close()

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
