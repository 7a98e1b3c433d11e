"""The gateway: one server on loopback for a job, a key per rollout."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from benchflow_core.contracts import Exchange, GatewayContext, HostEndpoint, KeyRequest, RolloutKey, Usage
from benchflow_core.errors import ConfigurationError, InfrastructureError
from benchflow_gateway_relay.keys import Key, KeyRing, OpenedModel, unpriced
from benchflow_gateway_relay.passing import RequestForwarder
from benchflow_gateway_relay.serving import HOST, RelayServer
from benchflow_gateway_relay.upstream import ProviderClient, credential_of

__all__ = ["Relay"]

_SETTLE = 0.5
"""Seconds that a reader waits for requests whose last bytes are already at the client."""
_ABORT = 5.0


class Relay:
    """`contracts.Gateway`. The server starts with the first key."""

    def __init__(self, context: GatewayContext) -> None:
        self.context = context
        folder = Path(context.work_dir) / "exchanges"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.keys = KeyRing(folder)
        self._starting = asyncio.Lock()
        self._server: RelayServer | None = None
        self._upstream: ProviderClient | None = None
        self._closed = False

    def refuse(self, request: KeyRequest) -> None:
        """Raise where the key asks for what this gateway cannot carry."""
        for target in request.models:
            if target.wire != request.client_wire:
                raise ConfigurationError(
                    f"the relay translates nothing: the agent speaks {request.client_wire}, "
                    f"{target.provider}/{target.model} {target.wire}."
                )
            if target.auth not in ("key", "bearer"):
                raise ConfigurationError(f"the relay cannot log in to {target.provider} ({target.auth}).")

    def passage(self, upstream: ProviderClient) -> RequestForwarder:
        """What handles requests."""
        return RequestForwarder(self.keys, upstream)

    async def issue(self, request: KeyRequest) -> RolloutKey:
        _refuse_always(request)
        self.refuse(request)
        opens = tuple(OpenedModel(target, credential_of(target, self.context.env)) for target in request.models)
        for opened in opens:
            names = opened.target.credential_env
            if names and not opened.credential and request.replay is None:
                raise ConfigurationError(
                    f"no credential for {opened.target.provider}: {' or '.join(names)} is not set.",
                    remedy=f"export {names[0]}=…",
                )
        endpoint = await self._start()
        key, secret = await asyncio.to_thread(self.keys.issue, request, opens)
        return RolloutKey(key.id, secret, endpoint)

    async def revoke(self, key_id: str) -> None:
        key = self.keys.get(key_id)
        if key is not None:
            self.keys.forget_secret(key)
            key.abort()
            await key.idle(_ABORT)

    async def exchanges(self, key_id: str, since: int = 0) -> AsyncIterator[Exchange]:
        key = self._key(key_id)
        await key.idle(_SETTLE)
        async for exchange in key.log.read(since):
            yield exchange

    async def usage(self, key_id: str) -> Usage:
        key = self._key(key_id)
        await key.idle(_SETTLE)
        return key.usage

    async def close(self) -> None:
        self._closed = True
        for key in self.keys:
            await self.revoke(key.id)
        server, self._server = self._server, None
        if server is not None:
            await server.close()
        if self._upstream is not None:
            await self._upstream.close()

    def _key(self, key_id: str) -> Key:
        key = self.keys.get(key_id)
        if key is None:
            raise ConfigurationError(f"this gateway issued no key '{key_id}'.")
        return key

    async def _start(self) -> HostEndpoint:
        async with self._starting:
            if self._closed:
                raise InfrastructureError("the gateway is closed.", retryable=False)
            if self._server is None:
                self._upstream = ProviderClient(self.context.env)
                self._server = await RelayServer.start(self.passage(self._upstream).handle)
            return HostEndpoint(HOST, self._server.port)


def _refuse_always(request: KeyRequest) -> None:
    if not request.models:
        raise ConfigurationError("a key needs at least one model.")
    for target in request.models:
        if (why := unpriced(request, target)) is not None:
            raise ConfigurationError(why, remedy="Give its prices, or cap the tokens instead.")
