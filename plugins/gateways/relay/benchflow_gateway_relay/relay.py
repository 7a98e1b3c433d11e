"""The gateway: one server on loopback for a job, a key per rollout."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

from aiohttp import web

from benchflow_core.contracts import Exchange, GatewayContext, HostEndpoint, KeyRequest, RolloutKey, Usage
from benchflow_core.errors import ConfigurationError, InfrastructureError
from benchflow_gateway_relay.keys import Key, KeyRing, Opened
from benchflow_gateway_relay.passing import Passage
from benchflow_gateway_relay.upstream import Upstream, credential_of

__all__ = ["Relay"]

_HOST = "127.0.0.1"
_SETTLE = 0.5
"""Seconds that a reader waits for requests whose last bytes are already at the client."""
_ABORT = 5.0
_QUIET = logging.getLogger("benchflow_gateway_relay.server")
_QUIET.disabled = True  # what goes wrong with a request is in its exchange


class Relay:
    """`contracts.Gateway`. The server starts with the first key."""

    def __init__(self, context: GatewayContext) -> None:
        self._context = context
        folder = Path(context.work_dir) / "exchanges"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._keys = KeyRing(folder)
        self._starting = asyncio.Lock()
        self._upstream: Upstream | None = None
        self._handlers: web.Server | None = None
        self._server: asyncio.Server | None = None
        self._closed = False

    async def issue(self, request: KeyRequest) -> RolloutKey:
        _refuse_what_cannot_be_carried(request)
        endpoint = await self._start()
        opens = tuple(Opened(target, credential_of(target, self._context.env)) for target in request.models)
        for opened in opens:
            names = opened.target.credential_env
            if names and not opened.credential:
                raise ConfigurationError(
                    f"no credential for {opened.target.provider}: {' or '.join(names)} is not set.",
                    remedy=f"export {names[0]}=…",
                )
        key, secret = self._keys.issue(request, opens)
        return RolloutKey(key.id, secret, endpoint)

    async def revoke(self, key_id: str) -> None:
        key = self._keys.get(key_id)
        if key is not None:
            self._keys.forget_secret(key)
            key.abort()
            await key.idle(_ABORT)

    async def exchanges(self, key_id: str) -> AsyncIterator[Exchange]:
        key = self._key(key_id)
        await key.idle(_SETTLE)
        async for exchange in key.log.read():
            yield exchange

    async def usage(self, key_id: str) -> Usage:
        key = self._key(key_id)
        await key.idle(_SETTLE)
        return key.usage

    async def close(self) -> None:
        self._closed = True
        for key in self._keys:
            await self.revoke(key.id)
        server, self._server = self._server, None
        if server is not None:
            server.close()
        if self._handlers is not None:
            self._handlers.pre_shutdown()  # connections that only wait for another request
            await self._handlers.shutdown(timeout=0.5)
        if self._upstream is not None:
            await self._upstream.close()

    def _key(self, key_id: str) -> Key:
        key = self._keys.get(key_id)
        if key is None:
            raise ConfigurationError(f"this gateway issued no key '{key_id}'.")
        return key

    async def _start(self) -> HostEndpoint:
        async with self._starting:
            if self._closed:
                raise InfrastructureError("the gateway is closed.", retryable=False)
            if self._server is None:
                self._upstream = Upstream(self._context.env)
                passage = Passage(self._keys, self._upstream)
                # A client that goes away cancels its handler, and with it the request to the provider.
                self._handlers = web.Server(
                    passage.handle, handler_cancellation=True, access_log=None, logger=_QUIET, keepalive_timeout=3600.0
                )
                loop = asyncio.get_running_loop()
                self._server = await loop.create_server(self._handlers, _HOST, 0, backlog=1024)
            return HostEndpoint(_HOST, self._server.sockets[0].getsockname()[1])


def _refuse_what_cannot_be_carried(request: KeyRequest) -> None:
    if not request.models:
        raise ConfigurationError("a key needs at least one model.")
    for target in request.models:
        if target.wire != request.client_wire:
            raise ConfigurationError(
                f"the relay translates nothing: the agent speaks {request.client_wire}, "
                f"{target.provider}/{target.model} {target.wire}."
            )
        if target.auth not in ("key", "bearer"):
            raise ConfigurationError(f"the relay cannot log in to {target.provider} ({target.auth}).")
        if request.max_cost_usd is not None and not {"input", "output"} <= set(target.prices):
            raise ConfigurationError(
                f"a spending cap needs the prices of {target.provider}/{target.model}, which are not known.",
                remedy="Give its prices, or cap the tokens instead.",
            )
