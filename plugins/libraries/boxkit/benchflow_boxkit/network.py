"""The network of one box: its policy, its proxy, and the host's servers shown inside."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Mapping

from benchflow_boxkit import proxy
from benchflow_boxkit.channel import Channel
from benchflow_boxkit.inside import wire
from benchflow_boxkit.upstream import Upstream
from benchflow_core.contracts.sandboxes import HostEndpoint, NetworkPolicy
from benchflow_core.errors import BenchflowError, InfrastructureError, SandboxLost

__all__ = ["Connection", "Network"]

Handler = Callable[["Connection"], Awaitable[None]]


class Connection:
    """A connection inside a box, as a `ByteStream` here."""

    def __init__(self, channel: Channel, number: int) -> None:
        self._channel, self._number = channel, number
        self._in, self._out = channel.reader(number), channel.writer(number)

    async def read(self, limit: int = 65536) -> bytes:
        return await self._in.read(limit)

    async def write(self, data: bytes) -> None:
        await self._out.write(data)

    def write_eof(self) -> None:
        with contextlib.suppress(SandboxLost):
            self._out.end()

    async def close(self) -> None:
        self.write_eof()
        self._in.drop()
        self._channel.forget(self._number)


class Network:
    """Survives a restore: the same ports are opened again in the new box.

    `proxied`: modes of the policy in which our proxy is the box's way out.
    """

    def __init__(
        self, policy: NetworkPolicy, env: Mapping[str, str], proxied: Collection[str] = ("allowlist",)
    ) -> None:
        self.policy, self._proxied = policy, proxied
        self._proxy = proxy.EgressProxy(policy, Upstream.of(env))
        self._proxy_port = 0
        self._exposed: dict[int, HostEndpoint] = {}
        self._handlers: dict[int, Handler] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._channel: Channel | None = None

    @property
    def env(self) -> dict[str, str]:
        return proxy.environment(self._proxy_port) if self._proxy_port and self.policy.mode in self._proxied else {}

    @property
    def own_ports(self) -> frozenset[int]:
        """Ports inside that are ours, not the box's."""
        return frozenset(self._handlers)

    async def attach(self, channel: Channel) -> None:
        """Serve a box, opening what was open in the one before."""
        self._channel = channel
        self._handlers.clear()
        if self.policy.mode in self._proxied:
            self._proxy_port = await self._listen(self._proxy_port, self._proxy.handle)
        for port, endpoint in self._exposed.items():
            await self._listen(port, _to(endpoint))

    async def detach(self) -> None:
        self._channel = None
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def set_policy(self, policy: NetworkPolicy) -> None:
        """Applies to what is open already: connections through the proxy are dropped."""
        self.policy = self._proxy.policy = policy
        for task in list(self._tasks):
            if task.get_name() == "proxy":
                task.cancel()
        if policy.mode in self._proxied and self._proxy_port not in self._handlers:
            self._proxy_port = await self._listen(self._proxy_port, self._proxy.handle)

    async def expose(self, endpoint: HostEndpoint, port: int | None) -> str:
        for known, other in self._exposed.items():
            if other == endpoint and port in (None, known):
                return f"http://127.0.0.1:{known}"
        opened = await self._listen(port or 0, _to(endpoint))
        self._exposed[opened] = endpoint
        return f"http://127.0.0.1:{opened}"

    async def _listen(self, port: int, handler: Handler) -> int:
        assert self._channel is not None
        try:
            opened = int((await self._channel.call("listen", port=port))["port"])
        except OSError as error:
            raise InfrastructureError(
                f"Port {port} of the box cannot be opened: {error.strerror}.", retryable=False
            ) from error
        self._handlers[opened] = handler
        return opened

    def accepted(self, event: wire.Message) -> None:
        """Something in the box connected to one of our ports."""
        channel, handler = self._channel, self._handlers.get(int(event["port"]))
        if channel is None or handler is None:
            return
        connection = Connection(channel, int(event["stream"]))
        name = "proxy" if int(event["port"]) == self._proxy_port else "exposed"
        task = asyncio.create_task(_serve(connection, handler), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _serve(connection: Connection, handler: Handler) -> None:
    try:
        with contextlib.suppress(OSError, BenchflowError, ExceptionGroup):
            await handler(connection)
    finally:
        await connection.close()


def _to(endpoint: HostEndpoint) -> Handler:
    async def handle(connection: Connection) -> None:
        outside = await asyncio.open_connection(endpoint.host, endpoint.port)
        await proxy.relay(connection, outside)

    return handle
