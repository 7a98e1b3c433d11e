"""The MCP server: streamable HTTP, two tools, on the official SDK."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Annotated, Any

from benchflow_wires.asgi import serve_app
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import Field  # noqa: TID253 - this module is imported only when a reviewer is wanted

from benchflow_core.contracts import HostEndpoint, HostServiceContext
from benchflow_service_reviewer.review import Reviewer

__all__ = ["build_server", "serve"]

_TOLD = (
    "Ask review_code for an independent opinion of your work. The reviewer reads your workspace and changes nothing."
)


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
    async with serve_app(app, "the reviewer") as endpoint:
        try:
            yield endpoint
        finally:
            await reviewer.close()
