"""The gateway: an HTTP server on the host's loopback, one connection per request."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from benchflow_core.contracts import Exchange, GatewayContext, HostEndpoint, KeyRequest, ModelTarget, RolloutKey, Usage

from {{module}}.passing import Refused, chat_request, pass_on, read_request, recorded, send_error

PATHS = ("/v1/chat/completions", "/chat/completions")


@dataclass
class Account:
    """What belongs to one key."""

    id: str
    request: KeyRequest
    open: bool = True
    exchanges: list[Exchange] = field(default_factory=list)

    def usage(self) -> Usage:
        found = [exchange.usage for exchange in self.exchanges]
        return Usage(
            input_tokens=sum(u.input_tokens or 0 for u in found),
            output_tokens=sum(u.output_tokens or 0 for u in found),
            requests=len(found),
            source="provider_response" if found else "unavailable",
        )


class Server:
    """Satisfies `benchflow_core.contracts.Gateway`."""

    def __init__(self, context: GatewayContext) -> None:
        self._env = context.env
        self._accounts: dict[str, Account] = {}
        self._server: asyncio.Server | None = None

    async def issue(self, request: KeyRequest) -> RolloutKey:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        secret, identity = secrets.token_urlsafe(32), secrets.token_hex(8)
        self._accounts[secret] = Account(identity, request)
        host, port = self._server.sockets[0].getsockname()[:2]
        return RolloutKey(identity, secret, HostEndpoint(host, port))

    async def revoke(self, key_id: str) -> None:
        for account in self._accounts.values():
            if account.id == key_id:
                account.open = False

    async def exchanges(self, key_id: str, since: int = 0) -> AsyncIterator[Exchange]:
        for exchange in self._account(key_id).exchanges[since:]:
            yield exchange

    async def usage(self, key_id: str) -> Usage:
        return self._account(key_id).usage()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()

    def _account(self, key_id: str) -> Account:
        return next(account for account in self._accounts.values() if account.id == key_id)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                await self._answer(reader, writer)
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, path, headers, body = await read_request(reader)
        try:
            account = self._admit(headers)
            if method != "POST" or path not in PATHS:
                raise Refused(404, f"{method} {path} is not open")
            request = chat_request(body)
            target = _target(account, request)
        except Refused as refused:
            send_error(writer, refused.status, str(refused))
            return
        began, started = time.monotonic(), time.time()
        reply = await pass_on(target, self._credential(target), body, writer)
        account.exchanges.append(recorded(account.id, started, time.monotonic() - began, path, request, reply))

    def _admit(self, headers: dict[str, str]) -> Account:
        account = self._accounts.get(headers.get("authorization", "").removeprefix("Bearer "))
        if account is None or not account.open:
            raise Refused(401, "unknown or revoked key")
        usage, budget = account.usage(), account.request.max_tokens
        if budget is not None and (usage.input_tokens or 0) + (usage.output_tokens or 0) >= budget:
            raise Refused(403, f"the key's budget of {budget} tokens is used up")
        return account

    def _credential(self, target: ModelTarget) -> str:
        return next((self._env[name] for name in target.credential_env if self._env.get(name)), "")


def _target(account: Account, request: dict[str, Any]) -> ModelTarget:
    for target in account.request.models:
        if target.model == request["model"]:
            return target
    raise Refused(403, f"the key does not open the model {json.dumps(request['model'])}")
