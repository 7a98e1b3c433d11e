"""A server on loopback."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

__all__ = ["HOST", "RelayServer"]

HOST: Final = "127.0.0.1"
_QUIET = logging.getLogger("benchflow_gateway_relay.server")
_QUIET.disabled = True  # what goes wrong with a request is in its exchange


class RelayServer:
    """One handler for everything. A client that goes away cancels it, and with it the request to the provider."""

    def __init__(self, handlers: web.Server, server: asyncio.Server) -> None:
        self._handlers = handlers
        self._server = server
        self.port: int = server.sockets[0].getsockname()[1]

    @classmethod
    async def start(cls, handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> RelayServer:
        handlers = web.Server(
            handle, handler_cancellation=True, access_log=None, logger=_QUIET, keepalive_timeout=3600.0
        )
        server = await asyncio.get_running_loop().create_server(handlers, HOST, 0, backlog=1024)
        return cls(handlers, server)

    async def close(self) -> None:
        self._server.close()
        self._handlers.pre_shutdown()  # connections that only wait for another request
        await self._handlers.shutdown(timeout=0.5)
