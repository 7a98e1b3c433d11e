"""The reviewer, as the environment plane starts it: on the host, with a port in the agent's box."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from benchflow_core.contracts import HostEndpoint, HostServiceContext, McpServer, ServiceContext, ServiceSpec
from benchflow_core.hookspecs import hookimpl

__all__ = ["benchflow_service"]

PORT = 8100


def _serve(context: HostServiceContext) -> AbstractAsyncContextManager[HostEndpoint]:
    from benchflow_service_reviewer.server import serve

    return serve(context)


def _mcp(context: ServiceContext) -> McpServer:
    return McpServer("benchflow-reviewer", "http", url=f"http://127.0.0.1:{context.port}/mcp")


@hookimpl
def benchflow_service() -> ServiceSpec:
    return ServiceSpec(
        summary="MCP reviewer: reads the workspace, cannot write to it",
        port=PORT,
        serve=_serve,
        mcp=_mcp,
        needs_model=True,
    )
