"""The network of one box: its policy, its proxy, and the host's servers shown inside."""

from __future__ import annotations

from benchflow_boxkit import proxy
from benchflow_boxkit.upstream import Upstream

from benchflow_core.contracts.sandboxes import HostEndpoint, NetworkPolicy
from benchflow_core.errors import InfrastructureError
from benchflow_sandbox_local import forward
from benchflow_sandbox_local.channel import Channel, fd_of

__all__ = ["Network"]


class Network:
    """Survives a restore: the same ports are opened again in the new box."""

    def __init__(self, policy: NetworkPolicy, *, host_network: bool = False, upstream: Upstream | None = None) -> None:
        self._policy, self._host_network = policy, host_network
        self._proxy = proxy.EgressProxy(policy, upstream)
        self._proxy_port = 0
        self._exposed: dict[int, HostEndpoint] = {}
        self._forwards: list[forward.Forward] = []
        self._proxy_forward: forward.Forward | None = None
        self._channel: Channel | None = None

    @property
    def env(self) -> dict[str, str]:
        return proxy.environment(self._proxy_port) if self._proxy_port and self._policy.mode != "none" else {}

    @property
    def own_ports(self) -> frozenset[int]:
        """Ports inside that are ours, not the box's."""
        return frozenset({self._proxy_port, *self._exposed})

    @property
    def wanted_port(self) -> int | None:
        """For the proxy's listener, which a new box makes while it starts; `None`: it needs none."""
        return None if self._policy.mode == "none" or self._host_network else self._proxy_port

    async def attach(self, channel: Channel, proxy_port: int, proxy_fd: int | None) -> None:
        """Serve what the box made, and open what was open in the one before."""
        self._channel = channel
        if proxy_fd is not None:
            self._proxy_port = proxy_port
            self._proxy_forward = await forward.serve(proxy_fd, proxy_port, self._proxy.handle)
        for port, endpoint in self._exposed.items():
            await self._listen(port, forward.to_endpoint(endpoint))

    async def detach(self) -> None:
        opened = [*self._forwards, *([self._proxy_forward] if self._proxy_forward else [])]
        self._forwards, self._proxy_forward, self._channel = [], None, None
        for each in opened:
            await each.close()

    async def set_policy(self, policy: NetworkPolicy) -> None:
        """Applies to what is open already: every connection is dropped, and dialled again under the new policy."""
        self._policy = self._proxy.policy = policy
        if self._proxy_forward is not None:
            self._proxy_forward.drop()
        elif policy.mode != "none":
            await self._open_proxy()

    async def expose(self, endpoint: HostEndpoint, port: int | None) -> str:
        if self._host_network:
            return f"http://{endpoint.host}:{endpoint.port}"
        for known, other in self._exposed.items():
            if other == endpoint and port in (None, known):
                return f"http://127.0.0.1:{known}"
        opened = await self._listen(port or 0, forward.to_endpoint(endpoint))
        self._exposed[opened.port] = endpoint
        return f"http://127.0.0.1:{opened.port}"

    async def _open_proxy(self) -> None:
        self._proxy_forward = await self._open(self._proxy_port, self._proxy.handle)
        self._proxy_port = self._proxy_forward.port

    async def _listen(self, port: int, handler: forward.Handler) -> forward.Forward:
        opened = await self._open(port, handler)
        self._forwards.append(opened)
        return opened

    async def _open(self, port: int, handler: forward.Handler) -> forward.Forward:
        assert self._channel is not None
        try:
            answer, fds = await self._channel.call_fds("listen", port=port)
        except OSError as error:
            raise InfrastructureError(
                f"Port {port} of the box cannot be opened: {error.strerror}.", retryable=False
            ) from error
        return await forward.serve(fd_of(fds), int(answer["port"]), handler)
