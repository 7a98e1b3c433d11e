"""`contracts.Gateway`: the relay, with LiteLLM between its two halves."""

from __future__ import annotations

import asyncio
from pathlib import Path

from benchflow_gateway_relay.relay import Relay
from benchflow_gateway_relay.serving import RelayServer
from benchflow_gateway_relay.upstream import ProviderClient

from benchflow_core.contracts import GatewayContext, KeyRequest, RolloutKey
from benchflow_service_litellm.back import ProviderSideProxy
from benchflow_service_litellm.calls import OpenRequests
from benchflow_service_litellm.front import AgentSideProxy
from benchflow_service_litellm.pool import WorkerPool
from benchflow_service_litellm.settings import proxy_env, thinking_effort, workers_for

__all__ = ["TranslatingRelay"]


class TranslatingRelay(Relay):
    """Keys, limits, refusals and the log are the relay's. LiteLLM starts with the first key, or late for a replay."""

    def __init__(self, context: GatewayContext) -> None:
        super().__init__(context)
        workers_for(1, 1, context.options.get("workers"))  # a bad option is refused now
        self._calls = OpenRequests()
        self.pool = WorkerPool(Path(context.work_dir) / "proxy", context.env, context.concurrency, context.options)
        self._back: RelayServer | None = None
        self._outside: ProviderClient | None = None
        self._opening = asyncio.Lock()

    def refuse(self, request: KeyRequest) -> None:
        """It carries every wire and login; a wrong setting is said before anything starts."""
        folder = Path(self.context.work_dir)
        proxy_env({k: v for k, v in self.context.env.items() if not k.endswith("_JSON")}, folder, "")

    def passage(self, upstream: ProviderClient) -> AgentSideProxy:
        effort = thinking_effort(self.context.env)
        return AgentSideProxy(self.keys, upstream, self._calls, self.pool, self._translate, effort=effort)

    async def issue(self, request: KeyRequest) -> RolloutKey:
        key = await super().issue(request)
        if request.replay is None:
            await self._translate()
        return key

    async def close(self) -> None:
        await super().close()
        async with self._opening:
            await self.pool.close()
            back, self._back = self._back, None
            if back is not None:
                await back.close()
            if self._outside is not None:
                await self._outside.close()

    async def _translate(self) -> None:
        """Once per job. A failed start leaves nothing, and is tried again by the next that needs it."""
        async with self._opening:
            if self._back is not None:
                return
            self._outside = ProviderClient(self.context.env)
            back = await RelayServer.start(
                ProviderSideProxy(self.keys, self._outside, self._calls, self.pool.secret).handle
            )
            try:
                await self.pool.start(back.port)
            except BaseException:
                await self.pool.close()
                await back.close()
                await self._outside.close()
                raise
            self._back = back
