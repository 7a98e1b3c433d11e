"""Show a server of the host inside a box: in the sandbox's own way, or through a tunnel where it has none."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final, Protocol

from benchflow_core.contracts.sandboxes import HostEndpoint, Sandbox
from benchflow_core.plugins.dotted import resolve

__all__ = ["OpenTunnel", "show", "show_in_box"]

_TUNNEL: Final = "benchflow_wires:Tunnel"


class OpenTunnel(Protocol):
    """What is closed when nobody needs the server in the box any more."""

    port: int

    @property
    def url(self) -> str: ...

    async def answers(self) -> bool: ...

    async def close(self) -> None: ...


async def show_in_box(
    box: Sandbox, endpoint: HostEndpoint, runtimes: Mapping[str, str], port: int | None = None, *, tunnel_port: int = 0
) -> tuple[str, OpenTunnel | None]:
    """Return the server's URL in the box, and the tunnel to close where one was needed.

    Without `port` it is at any that is free; a tunnel takes `tunnel_port` then, where that is given.
    """
    try:
        return (await box.expose_to_box(endpoint, port=port)).rstrip("/"), None
    except NotImplementedError:
        kind = resolve(_TUNNEL, "a sandbox that cannot show servers of the host in its boxes")
        tunnel: OpenTunnel = await kind.open(box, endpoint, runtimes, port=port or tunnel_port)
        return tunnel.url, tunnel


async def show(
    stack: AsyncExitStack, box: Sandbox, endpoint: HostEndpoint, port: int | None, runtimes: Mapping[str, str]
) -> str:
    """Show a server of the host at a port of the box's loopback until the stack is left; return its URL there."""
    url, tunnel = await show_in_box(box, endpoint, runtimes, port)
    if tunnel is not None:
        stack.push_async_callback(tunnel.close)
    return url
