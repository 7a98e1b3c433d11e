"""A relay in front of the local model, and requests in the words of each wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from benchflow_gateway_relay.relay import Relay
from benchflow_testing import LocalModel

from benchflow_core.contracts import Exchange, GatewayContext, KeyRequest, ModelTarget, RolloutKey, Wire

PROVIDER_KEY = "sk-provider-0123456789"
SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


class Words:
    """What each wire calls things."""

    wires: tuple[Wire, ...] = ("chat", "responses", "messages", "gemini")
    provider_key = PROVIDER_KEY

    def path(self, wire: str, *, stream: bool = False, model: str = "local-model") -> str:
        call = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return {
            "chat": "/v1/chat/completions",
            "responses": "/v1/responses",
            "messages": "/v1/messages",
            "gemini": f"/v1beta/models/{model}:{call}",
        }[wire]

    def body(self, wire: str, prompt: str, *, stream: bool = False, tools: Any = False, **more: Any) -> dict[str, Any]:
        """`tools`: a shell of the agent's, or a list to send as it is."""
        said = [{"role": "user", "content": prompt}]
        if wire == "gemini":
            sent: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": prompt}]}]}
            offered: Any = [{"functionDeclarations": [{"name": "bash", "parametersJsonSchema": SHELL}]}]
        else:
            sent = {"model": "local-model", **({"stream": True} if stream else {})}
            sent["input" if wire == "responses" else "messages"] = said
            offered = {
                "chat": [{"type": "function", "function": {"name": "bash", "parameters": SHELL}}],
                "responses": [{"type": "function", "name": "bash", "parameters": SHELL}],
                "messages": [{"name": "bash", "input_schema": SHELL}],
            }[wire]
        if wire == "messages":
            sent["max_tokens"] = 100
        return {**sent, **({"tools": offered if tools is True else tools} if tools else {}), **more}


class Serving:
    """A provider with one handler, while the context is open."""

    def __init__(self, handler: Any) -> None:
        self._handler = handler

    async def __aenter__(self) -> str:
        self._runner = web.ServerRunner(web.Server(self._handler), shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()


@dataclass
class Bench:
    """What a test holds."""

    relay: Relay
    model: LocalModel
    http: aiohttp.ClientSession
    words: Words
    serving: type[Serving] = Serving

    def target(self, wire: Wire, **values: Any) -> ModelTarget:
        version = "/v1" if wire in ("chat", "responses") else ""
        made = ModelTarget("local-model", "local", wire, self.model.base_url + version, ("LOCAL_API_KEY",))
        return replace(made, **values)

    async def key(self, wire: Wire, *, target: dict[str, Any] | None = None, **values: Any) -> RolloutKey:
        models = (self.target(wire, **(target or {})),)
        return await self.relay.issue(KeyRequest("rollout", "agent", models, wire, **values))

    def url(self, key: RolloutKey, path: str) -> str:
        return f"http://{key.endpoint.host}:{key.endpoint.port}{path}"

    async def post(
        self, key: RolloutKey, path: str, body: Any, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers. A body that is not a mapping is sent as it is."""
        sent = {"json": body} if isinstance(body, dict) else {"data": body}
        given = {"authorization": f"Bearer {key.secret}"} if headers is None else headers
        async with self.http.post(self.url(key, path), headers=given, **sent) as response:
            return response.status, await response.read(), {k.lower(): v for k, v in response.headers.items()}

    async def ask(self, key: RolloutKey, wire: str, prompt: str, *, stream: bool = False, **more: Any) -> Any:
        return await self.post(
            key, self.words.path(wire, stream=stream), self.words.body(wire, prompt, stream=stream, **more)
        )

    async def exchanges(self, key: RolloutKey) -> list[Exchange]:
        return [exchange async for exchange in self.relay.exchanges(key.id)]


@pytest.fixture
def words() -> Words:
    return Words()


@pytest.fixture
def open_relay(tmp_path: Path) -> Callable[..., Relay]:
    def make(**env: str) -> Relay:
        return Relay(GatewayContext(tmp_path / "work", {"LOCAL_API_KEY": PROVIDER_KEY, **env}))

    return make


@pytest_asyncio.fixture
async def bench(words: Words, open_relay: Callable[..., Relay]) -> AsyncIterator[Bench]:
    relay = open_relay()
    async with LocalModel() as model, aiohttp.ClientSession() as http:
        try:
            yield Bench(relay, model, http, words)
        finally:
            await relay.close()
