"""The gateways of a job for several processes of its host: workers ask for keys over a loopback connection.

Whoever connects has to know the token. When a connection ends, however it ends, the keys that were issued over it are
void.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchflow_core.contracts import Exchange, Gateway, HostEndpoint, KeyRequest, ModelTarget, RolloutKey, Usage
from benchflow_core.errors import BenchflowError, TransportError, error_from_json

__all__ = ["GatewayServer", "RemoteGateways"]

_LIMIT: Final = 1 << 28
"""Bytes of one answer: the exchanges of a long turn, with their bodies."""
_REVOKE: Final = 10.0
Open = Callable[[str, Mapping[str, str]], Awaitable[Gateway]]


class GatewayServer:
    """Serves the job's gateways to its workers. `open(name, options)` gives the running gateway."""

    def __init__(self, open: Open) -> None:
        self._open = open
        self._server: asyncio.Server | None = None
        self._token = secrets.token_hex(32)
        self._clients: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def address(self) -> dict[str, Any]:
        """Listen, and return what a worker connects to. It is a secret: the token opens the job's models."""
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_LIMIT)
        return {"port": self._server.sockets[0].getsockname()[1], "token": self._token}

    async def close(self) -> None:
        """End every connection. Safe to call again."""
        if self._server is None:
            return
        self._server.close()
        clients = dict(self._clients)
        for writer in clients.values():
            writer.close()
        if clients:
            await asyncio.wait(clients, timeout=_REVOKE)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients[task] = writer
        issued: dict[str, Gateway] = {}
        try:
            said = (await reader.readline()).decode(errors="replace").strip()
            if secrets.compare_digest(said, self._token):
                async for line in reader:
                    writer.write(json.dumps(await self._answer(json.loads(line), issued)).encode() + b"\n")
                    await writer.drain()
        except (OSError, ValueError):
            pass  # the worker is gone
        finally:
            for key, gateway in issued.items():
                with suppress(Exception):
                    await gateway.revoke(key)
            del self._clients[task]
            writer.close()

    async def _answer(self, ask: Mapping[str, Any], issued: dict[str, Gateway]) -> dict[str, Any]:
        try:
            gateway = await self._open(ask["gateway"], ask["options"])
            return {"n": ask["n"], "value": await _do(gateway, ask, issued)}
        except BenchflowError as error:
            return {"n": ask["n"], "error": error.to_json()}
        except Exception as error:
            return {"n": ask["n"], "error": TransportError(f"gateway: {type(error).__name__}: {error}").to_json()}


async def _do(gateway: Gateway, ask: Mapping[str, Any], issued: dict[str, Gateway]) -> Any:
    call, given = ask["call"], ask["given"]
    if call == "issue":
        key = await gateway.issue(_request(given["request"]))
        issued[key.id] = gateway
        return asdict(key)
    if given["key_id"] not in issued:
        raise TransportError("the key was issued to another worker.", retryable=False)
    if call == "revoke":
        return await gateway.revoke(given["key_id"])
    if call == "usage":
        return asdict(await gateway.usage(given["key_id"]))
    return [asdict(exchange) async for exchange in gateway.exchanges(given["key_id"], given["since"])]


def _request(value: Mapping[str, Any]) -> KeyRequest:
    models = tuple(_target(model) for model in value["models"])
    made = {**value, "models": models, "helpers": tuple(value["helpers"])}
    return KeyRequest(**{**made, "replay": Path(made["replay"]) if made["replay"] else None})


def _target(value: Mapping[str, Any]) -> ModelTarget:
    return ModelTarget(**{**value, "credential_env": tuple(value["credential_env"])})


class RemoteGateways:
    """The job's gateways as a worker sees them: one connection, opened on first use."""

    def __init__(self, address: Mapping[str, Any]) -> None:
        self._address = address
        self._numbers = itertools.count()
        self._opening = asyncio.Lock()
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}

    def gateway(self, name: str, options: Mapping[str, str]) -> Gateway:
        return _RemoteGateway(self, {"gateway": name, "options": dict(options)})

    async def call(self, who: Mapping[str, Any], call: str, **given: Any) -> Any:
        number = next(self._numbers)
        answered = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            writer = await self._connected()
            ask = {**who, "n": number, "call": call, "given": given}
            writer.write(json.dumps(ask, default=str).encode() + b"\n")
            await writer.drain()
            answer = await answered
        except OSError as error:
            raise TransportError(f"the job's gateway is out of reach: {error}.") from error
        finally:
            del self._asked[number]
        if "error" in answer:
            raise error_from_json(answer["error"])
        return answer["value"]

    async def _connected(self) -> asyncio.StreamWriter:
        async with self._opening:
            if self._writer is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", self._address["port"], limit=_LIMIT)
                writer.write(f"{self._address['token']}\n".encode())
                self._writer, self._reading = writer, asyncio.create_task(self._read(reader))
            return self._writer

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            async for line in reader:
                answer = json.loads(line)
                asked = self._asked.get(answer["n"])
                if asked is not None and not asked.done():
                    asked.set_result(answer)
        finally:
            for asked in self._asked.values():
                if not asked.done():
                    asked.set_exception(ConnectionResetError("it closed the connection"))

    async def close(self) -> None:
        """Safe to call again."""
        if self._writer is not None and self._reading is not None:
            self._writer.close()
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)


class _RemoteGateway:
    def __init__(self, gateways: RemoteGateways, who: Mapping[str, Any]) -> None:
        self._gateways, self._who = gateways, who

    async def issue(self, request: KeyRequest) -> RolloutKey:
        value = await self._gateways.call(self._who, "issue", request=asdict(request))
        return RolloutKey(value["id"], value["secret"], HostEndpoint(**value["endpoint"]))

    async def revoke(self, key_id: str) -> None:
        await self._gateways.call(self._who, "revoke", key_id=key_id)

    async def exchanges(self, key_id: str, since: int = 0) -> AsyncIterator[Exchange]:
        for value in await self._gateways.call(self._who, "exchanges", key_id=key_id, since=since):
            yield Exchange(**{**value, "usage": Usage(**value["usage"])})

    async def usage(self, key_id: str) -> Usage:
        return Usage(**await self._gateways.call(self._who, "usage", key_id=key_id))

    async def close(self) -> None:
        """The gateway is the job's."""
