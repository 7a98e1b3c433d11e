"""The MCP server: streamable HTTP, two tools, on the official SDK."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import Field  # noqa: TID253 - this module is imported only when a reviewer is wanted

from benchflow_core.contracts import HostEndpoint, HostServiceContext
from benchflow_core.errors import InfrastructureError
from benchflow_service_reviewer.review import Reviewer

__all__ = ["build_server", "serve"]

_START = 15.0
_STOP = 5.0
_TOLD = (
    "Ask review_code for an independent opinion of your work. The reviewer reads your workspace and changes nothing."
)


class _Server(uvicorn.Server):
    """Leaves the signals of this process alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def build_server(reviewer: Reviewer) -> MCPServer[Any]:
    """`review_code` and `get_review_status`, and nothing else."""
    server: MCPServer[Any] = MCPServer("benchflow-reviewer", instructions=_TOLD, log_level="WARNING")

    @server.tool()
    async def review_code(
        question: Annotated[str, Field(description="What the reviewer should look at in particular.")] = "",
        paths: Annotated[list[str], Field(description="Files, folders or patterns; none: everything.")] = [],  # noqa: B006
        wait: Annotated[bool, Field(description="False: return at once, ask get_review_status later.")] = True,
    ) -> dict[str, Any]:
        """Have the files of your workspace reviewed with respect to your task. Returns the reviewer's feedback."""
        try:
            return (await reviewer.review(question, paths, wait=wait)).to_json()
        except LookupError as error:
            raise ToolError(str(error)) from None

    @server.tool()
    async def get_review_status(
        review_id: Annotated[str, Field(description="As review_code returned it; empty: the latest.")] = "",
    ) -> dict[str, Any]:
        """Where a review stands: running, done or failed, with its feedback."""
        try:
            return reviewer.status(review_id).to_json()
        except LookupError as error:
            raise ToolError(str(error)) from None

    return server


@contextlib.asynccontextmanager
async def serve(context: HostServiceContext) -> AsyncIterator[HostEndpoint]:
    """On a free port of this host's loopback, while it is open."""
    reviewer = Reviewer(context)
    # The port inside the box is another, and only that box reaches this one: a Host header proves nothing here.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = build_server(reviewer).streamable_http_app(transport_security=security)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    port = listener.getsockname()[1]
    config = uvicorn.Config(
        app, log_config=None, log_level=logging.CRITICAL, lifespan="on", timeout_graceful_shutdown=1, access_log=False
    )
    server = _Server(config)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await _started(server, running)
        yield HostEndpoint("127.0.0.1", port)
    finally:
        await reviewer.close()
        server.should_exit = True
        done, _ = await asyncio.wait({running}, timeout=_STOP)
        if not done:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        listener.close()


async def _started(server: uvicorn.Server, running: asyncio.Task[None]) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + _START
    while not server.started:
        if running.done() or loop.time() > until:
            reason = running.exception() if running.done() and not running.cancelled() else "it took too long"
            raise InfrastructureError(f"the reviewer did not start: {reason}")
        await asyncio.sleep(0.01)
