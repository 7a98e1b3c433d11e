"""The network of a box: its way out is our proxy, or it shares this machine's own network."""

from __future__ import annotations

from collections.abc import Mapping

from benchflow_boxkit.network import Network

from benchflow_core.contracts.sandboxes import HostEndpoint, NetworkPolicy

__all__ = ["LocalNetwork"]


class LocalNetwork(Network):
    def __init__(self, policy: NetworkPolicy, env: Mapping[str, str], *, shared: bool) -> None:
        super().__init__(policy, env, proxied=() if shared else ("public", "allowlist"))
        self._shared = shared

    async def expose(self, endpoint: HostEndpoint, port: int | None) -> str:
        if self._shared:
            return f"http://{endpoint.host}:{endpoint.port}"
        return await super().expose(endpoint, port)
