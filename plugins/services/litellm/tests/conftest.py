"""One LiteLLM for all tests that can share it, in front of the local model."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from benchflow_service_litellm.environment import LiteLLMEnvironment
from benchflow_service_litellm.gateway import TranslatingRelay
from benchflow_testing import LocalModel

from benchflow_core.contracts import Exchange, GatewayContext, KeyRequest, ModelTarget, RolloutKey, Wire

PROVIDER_KEY = "sk-provider-0123456789"
SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


@pytest.fixture(autouse=True)
def _prepared(request: pytest.FixtureRequest) -> None:
    """Tests never install it: that is 730 MB."""
    if request.node.get_closest_marker("litellm") and not LiteLLMEnvironment.of_process().installed:
        pytest.skip("needs LiteLLM's environment: run scripts/litellm_env.sh")


@dataclass
class Bench:
    """What a test holds."""

    gateway: TranslatingRelay
    model: LocalModel
    http: aiohttp.ClientSession
    folder: Path
    provider_key: str = PROVIDER_KEY

    def target(self, wire: Wire, **values: Any) -> ModelTarget:
        version = "/v1" if wire in ("chat", "responses") else ""
        made = ModelTarget("org/local-model", "local", wire, self.model.base_url + version, ("LOCAL_API_KEY",))
        return replace(made, **values)

    async def key(
        self, client: Wire, provider: Wire, *, target: dict[str, Any] | None = None, **more: Any
    ) -> RolloutKey:
        models = (self.target(provider, **(target or {})),)
        return await self.gateway.issue(KeyRequest("rollout", "agent", models, client, **more))

    def url(self, key: RolloutKey, path: str = "") -> str:
        return f"http://{key.endpoint.host}:{key.endpoint.port}{path}"

    async def ask(
        self,
        key: RolloutKey,
        wire: str,
        prompt: str,
        *,
        stream: bool = False,
        tools: Any = False,
        model: str = "org/local-model",
        **more: Any,
    ) -> tuple[int, str, dict[str, str]]:
        """One request in the words of a wire: status, body, headers."""
        path, body = _words(wire, prompt, stream, tools, model)
        headers = {"authorization": f"Bearer {key.secret}"}
        async with self.http.post(self.url(key, path), json={**body, **more}, headers=headers) as response:
            return (
                response.status,
                (await response.read()).decode(),
                {k.lower(): v for k, v in response.headers.items()},
            )

    async def last(self, key: RolloutKey) -> Exchange:
        return [exchange async for exchange in self.gateway.exchanges(key.id)][-1]


def _words(wire: str, prompt: str, stream: bool, tools: Any, model: str) -> tuple[str, dict[str, Any]]:
    said = [{"role": "user", "content": prompt}]
    if wire == "gemini":
        call = "streamGenerateContent?alt=sse" if stream else "generateContent"
        body: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": prompt}]}]}
        offered: Any = [{"functionDeclarations": [{"name": "bash", "parametersJsonSchema": SHELL}]}]
        path = f"/v1beta/models/{model}:{call}"
    else:
        body = {"model": model, **({"stream": True} if stream else {})}
        body["input" if wire == "responses" else "messages"] = said
        offered = {
            "chat": [{"type": "function", "function": {"name": "bash", "parameters": SHELL}}],
            "responses": [{"type": "function", "name": "bash", "parameters": SHELL}],
            "messages": [{"name": "bash", "input_schema": SHELL}],
        }[wire]
        path = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}[wire]
        if wire == "messages":
            body["max_tokens"] = 100
    return path, {**body, **({"tools": offered if tools is True else tools} if tools else {})}


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def google_account() -> AsyncIterator[str]:
    """A service account whose tokens are made here: each is the key of the local model."""

    async def token(_: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"access_token": PROVIDER_KEY, "expires_in": 3600, "token_type": "Bearer"})

    runner = web.ServerRunner(web.Server(token))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made = await asyncio.to_thread(
        subprocess.run, ("openssl", "genrsa", "2048"), capture_output=True, text=True, check=True
    )
    yield json.dumps(
        {
            "type": "service_account",
            "project_id": "p",
            "private_key_id": "1",
            "private_key": made.stdout,
            "client_email": "agent@p.iam.gserviceaccount.com",
            "token_uri": f"http://127.0.0.1:{runner.addresses[0][1]}/token",
        }
    )
    await runner.cleanup()


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def bench(tmp_path_factory: Any, google_account: str) -> AsyncIterator[Bench]:
    folder = tmp_path_factory.mktemp("litellm")
    async with LocalModel(key=PROVIDER_KEY) as model, aiohttp.ClientSession() as http:
        env = {
            "PATH": os.environ["PATH"],
            "BENCHFLOW_LITELLM_HOME": str(LiteLLMEnvironment.of_process().home),
            "LOCAL_API_KEY": PROVIDER_KEY,
            "OPENAI_API_KEY": "sk-another-0123456789",
            "GOOGLE_APPLICATION_CREDENTIALS_JSON": google_account,
            "GOOGLE_CLOUD_PROJECT": "p",
            "VERTEXAI_API_BASE": model.base_url,
        }
        gateway = TranslatingRelay(GatewayContext(folder, env, concurrency=4))
        try:
            yield Bench(gateway, model, http, folder)
        finally:
            await gateway.close()
