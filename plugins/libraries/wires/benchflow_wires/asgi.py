"""Serve an ASGI application on this host's loopback with uvicorn, to be shown in a box."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Final

import uvicorn

from benchflow_core.contracts import HostEndpoint
from benchflow_core.errors import InfrastructureError

__all__ = ["App", "serve_app"]

App = Callable[..., Awaitable[None]]
_START: Final = 15.0
_STOP: Final = 5.0


class _Server(uvicorn.Server):
    """A uvicorn server for one part of a program: it takes no signals and exits no process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        with contextlib.suppress(SystemExit):
            await super().serve(sockets)


@contextlib.asynccontextmanager
async def serve_app(app: App, who: str, failed: Callable[[str], None] | None = None) -> AsyncIterator[HostEndpoint]:
    """Serve `app` on a free port while this is open. `failed` gets what the application raises; its client gets a 500.

    `who` stands in the error of an application that does not start.
    """
    errors: list[str] = []

    async def reported(scope: Any, receive: Any, send: Any) -> None:
        async def watched(message: Any) -> None:
            if message["type"] == "lifespan.startup.failed":
                errors.append(message.get("message") or "no reason given")
            await send(message)

        try:
            await app(scope, receive, watched)
        except Exception as error:
            if scope["type"] == "http" and failed is not None:
                failed(f"{type(error).__name__}: {error}")
            raise

    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server = _Server(
        uvicorn.Config(reported, log_config=None, log_level=logging.CRITICAL, timeout_graceful_shutdown=0, ws="none")
    )
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await _started(server, running, who, errors)
        yield HostEndpoint("127.0.0.1", listener.getsockname()[1])
    finally:
        server.should_exit = True
        done, _ = await asyncio.wait({running}, timeout=_STOP)
        if not done:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        listener.close()


async def _started(server: uvicorn.Server, running: asyncio.Task[None], who: str, errors: list[str]) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + _START
    while not server.started:
        if running.done() or loop.time() > until:
            reason = "; ".join(errors) or ("it ended" if running.done() else f"not within {_START:g} s")
            raise InfrastructureError(f"{who} did not start: {reason}")
        await asyncio.sleep(0.01)
