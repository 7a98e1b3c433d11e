"""Gateways: a key per rollout that opens its models and nothing else, and a faithful record of what crossed it."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import pytest_asyncio

from benchflow_core.contracts import Exchange, Gateway, GatewayContext, GatewaySpec, KeyRequest, ModelTarget, RolloutKey
from benchflow_testing_kit.plugin import PluginConformance
from benchflow_testing_kit.upstream import FAULTS, SECRET, STREAM, Upstream, answer_to, upstream

__all__ = ["GatewayConformance"]

MODEL = "kit-model"
_HOST = frozenset({"XDG_CACHE_HOME", "HOME", "PATH"})
"""Of the host's environment: where programs and caches are."""


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes
    headers: Mapping[str, str]
    first_byte_after: float


class GatewayConformance(PluginConformance):
    """Fixtures: `plugin`, and `gateway_options` where it needs some. The provider is the kit's own."""

    kind: ClassVar[str] = "gateway"
    settings: ClassVar[frozenset[str]] = PluginConformance.settings | {"gateway_options"}

    @pytest.fixture
    def gateway_options(self) -> Mapping[str, str]:
        return {}

    @pytest_asyncio.fixture(loop_scope="class")
    async def provider(self) -> AsyncIterator[Upstream]:
        async with upstream() as server:
            yield server

    @pytest_asyncio.fixture(loop_scope="class", scope="class", autouse=True)
    @classmethod
    async def opened_gateways(cls, request: pytest.FixtureRequest) -> AsyncIterator[None]:
        """One gateway serves all tests of a class, as it serves all rollouts of a job: starting may be dear."""
        request.cls.opened = []
        yield
        for gateway, folder in request.cls.opened:
            await gateway.close()
            folder.cleanup()

    @pytest.fixture
    def open_gateway(
        self, spec: GatewaySpec, gateway_options: Mapping[str, str], request: pytest.FixtureRequest
    ) -> Callable[[], Awaitable[Gateway]]:
        """Another one."""
        if ("chat", "chat") not in spec.wires:
            pytest.skip("the gateway does not carry chat completions")
        found = spec.available()
        if not found.ok:
            pytest.skip(f"not available here: {found.reason} {found.remedy}".strip())

        async def make() -> Gateway:
            folder = tempfile.TemporaryDirectory(prefix="benchflow-kit-")
            env = {
                "KIT_PROVIDER_KEY": SECRET,
                **{k: v for k, v in os.environ.items() if k in _HOST or k.startswith("BENCHFLOW_")},
            }
            context = GatewayContext(Path(folder.name), env, concurrency=8, options=gateway_options)
            gateway = await asyncio.to_thread(spec.open, context)
            request.cls.opened.append((gateway, folder))
            return gateway

        return make

    @pytest_asyncio.fixture(loop_scope="class")
    async def gateway(self, open_gateway: Callable[[], Awaitable[Gateway]], request: pytest.FixtureRequest) -> Gateway:
        return request.cls.opened[0][0] if request.cls.opened else await open_gateway()

    async def test_key_opens_its_model(self, gateway: Gateway, provider: Upstream, spec: GatewaySpec) -> None:
        key = await gateway.issue(_request(provider))
        reply = await _post(key, "hällo  wörld")
        assert reply.status == 200 and _said(reply) == "you said: hällo  wörld"
        assert not spec.exact or reply.body == answer_to("hällo  wörld"), "the answer is passed on byte for byte"
        assert provider.requests[0]["model"] == MODEL
        assert provider.credentials == [f"Bearer {SECRET}"], "the provider gets its own key, not the rollout's"
        assert SECRET not in repr(key) + key.secret + repr(reply) and key.secret not in repr(key)

    async def test_without_a_key_nothing_is_open(self, gateway: Gateway, provider: Upstream) -> None:
        key = await gateway.issue(_request(provider))
        for secret in ("", "wrong", key.secret[:-1], SECRET, key.id):
            reply = await _post(key, "x", secret=secret)
            assert reply.status in (401, 403), secret
        assert provider.requests == []

    async def test_revoked_key_is_refused(self, gateway: Gateway, provider: Upstream) -> None:
        key, other = await gateway.issue(_request(provider)), await gateway.issue(_request(provider))
        assert (await _post(key, "x")).status == 200
        await gateway.revoke(key.id)
        await gateway.revoke(key.id)
        assert (await _post(key, "x")).status in (401, 403)
        assert (await _post(other, "x")).status == 200, "another key goes on"
        assert len(await _exchanges(gateway, key)) >= 1, "what was recorded stays"

    async def test_keys_are_apart(self, gateway: Gateway, provider: Upstream) -> None:
        one, two = await gateway.issue(_request(provider)), await gateway.issue(_request(provider, "other-model"))
        assert one.id != two.id and one.secret != two.secret
        assert (await _post(one, "first")).status == 200
        assert [e.request["messages"][0]["content"] for e in await _exchanges(gateway, one)] == ["first"]
        assert await _exchanges(gateway, two) == []
        reached = len(provider.requests)
        assert 400 <= (await _post(one, "x", model="other-model")).status < 500, "a key opens its own models only"
        assert len(provider.requests) == reached

    async def test_exchanges_are_recorded(self, gateway: Gateway, provider: Upstream) -> None:
        key = await gateway.issue(_request(provider))
        for text in ("one", "two"):
            await _post(key, text)
        found = await _exchanges(gateway, key)
        assert [e.request["messages"][0]["content"] for e in found] == ["one", "two"]
        for exchange in found:
            assert (exchange.key_id, exchange.status, exchange.wire) == (key.id, 200, "chat")
            assert (exchange.requested_model, exchange.returned_model) == (MODEL, "kit-model-0613")
            assert exchange.response is not None and exchange.response["id"] == "c-1"
            assert abs(exchange.started_at - time.time()) < 60 and exchange.duration >= 0
            assert (exchange.usage.input_tokens, exchange.usage.output_tokens) == (7, 5)
            assert SECRET not in repr(exchange) and key.secret not in repr(exchange)

    async def test_exchanges_are_read_on_from_a_place(self, gateway: Gateway, provider: Upstream) -> None:
        key = await gateway.issue(_request(provider))
        for text in ("one", "two", "three"):
            await _post(key, text)
        for since, expected in ((0, ["one", "two", "three"]), (2, ["three"]), (3, []), (9, [])):
            found = [e async for e in gateway.exchanges(key.id, since)]
            assert [e.request["messages"][0]["content"] for e in found] == expected

    async def test_usage_is_counted(self, gateway: Gateway, provider: Upstream) -> None:
        key, idle = await gateway.issue(_request(provider)), await gateway.issue(_request(provider))
        for stream in (False, True, False):
            await _post(key, "x", stream=stream)
        usage = await gateway.usage(key.id)
        assert (usage.input_tokens, usage.output_tokens, usage.requests) == (21, 15, 3)
        assert not (await gateway.usage(idle.id)).requests

    async def test_token_budget_is_kept(self, gateway: Gateway, provider: Upstream) -> None:
        key = await gateway.issue(_request(provider, max_tokens=20))
        assert [(await _post(key, "x")).status for _ in range(2)] == [200, 200]
        assert 400 <= (await _post(key, "x")).status < 500
        assert len(provider.requests) == 2

    async def test_stream_is_passed_on_byte_for_byte_as_it_comes(
        self, gateway: Gateway, provider: Upstream, spec: GatewaySpec
    ) -> None:
        provider.pause = 0.6
        key = await gateway.issue(_request(provider))
        reply = await _post(key, "x", stream=True)
        assert reply.status == 200 and _said(reply) == "hé there"
        assert not spec.exact or reply.body == b"".join(STREAM), "the stream is passed on byte for byte"
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert reply.first_byte_after < 1.2, "the first part comes before the last one was sent"
        exchange = (await _exchanges(gateway, key))[0]
        assert exchange.streamed and exchange.returned_model == "kit-model-0613"
        assert (exchange.usage.input_tokens, exchange.usage.output_tokens) == (7, 5)

    @pytest.mark.parametrize("fault", FAULTS)
    async def test_errors_of_the_provider_are_passed_on(
        self, gateway: Gateway, provider: Upstream, spec: GatewaySpec, fault: str
    ) -> None:
        key = await gateway.issue(_request(provider))
        reply = await _post(key, fault)
        assert reply.status == FAULTS[fault][0]
        assert not spec.exact or reply.body == FAULTS[fault][1]
        assert fault != "rate-limit" or reply.headers["retry-after"] == "17"
        assert len(provider.requests) == 1, "retrying is the client's business"
        assert (await _exchanges(gateway, key))[0].status == FAULTS[fault][0]

    async def test_unreachable_provider_is_an_error(self, gateway: Gateway, provider: Upstream) -> None:
        target = ModelTarget(MODEL, "kit", "chat", "http://127.0.0.1:9/v1", ("KIT_PROVIDER_KEY",))
        key = await gateway.issue(KeyRequest("rollout", "agent", (target,), "chat"))
        assert (await _post(key, "x")).status in (502, 503, 504)
        found = await _exchanges(gateway, key)
        assert len(found) == 1 and found[0].error

    async def test_concurrent_requests_do_not_mix(self, gateway: Gateway, provider: Upstream) -> None:
        keys = [await gateway.issue(_request(provider)) for _ in range(4)]
        with ThreadPoolExecutor(20) as pool:
            calls = [_post(keys[n % 4], f"text {n}", stream=n % 3 == 0, pool=pool) for n in range(20)]
            replies = await asyncio.gather(*calls)
        for n, reply in enumerate(replies):
            assert _said(reply) == ("hé there" if n % 3 == 0 else f"you said: text {n}")
        assert [len(await _exchanges(gateway, key)) for key in keys] == [5] * 4

    @pytest.mark.parametrize("field", ["base_url", "api_base", "api_key", "extra_headers"])
    async def test_body_cannot_redirect_the_request(self, gateway: Gateway, provider: Upstream, field: str) -> None:
        async with upstream() as decoy:
            key = await gateway.issue(_request(provider))
            value: Any = {"Authorization": "x"} if field == "extra_headers" else decoy.base_url
            reply = await _post(key, "x", extra={field: value})
            assert 400 <= reply.status < 500, f"`{field}` in the body is refused"
            assert decoy.requests == [] and provider.requests == []

    async def test_provider_cannot_redirect_the_request(self, gateway: Gateway, provider: Upstream) -> None:
        async with upstream() as decoy:
            provider.redirect_to = f"{decoy.base_url}/chat/completions"
            key = await gateway.issue(_request(provider))
            await _post(key, "x")
            assert decoy.requests == [], "a redirect would carry the provider's key to another server"

    @pytest.mark.parametrize("path", ["/", "/v1/files", "/admin", "/v1/../admin", "/metrics", "/v1/chat/completions/x"])
    async def test_other_paths_are_closed(self, gateway: Gateway, provider: Upstream, path: str) -> None:
        key = await gateway.issue(_request(provider))
        assert 400 <= (await _post(key, "x", path=path)).status < 500
        assert provider.requests == []

    async def test_malformed_bodies_are_refused(self, gateway: Gateway, provider: Upstream) -> None:
        key = await gateway.issue(_request(provider))
        for body in (b"", b"{", b"[]", b"\xff\xfe", b'{"model": 5, "messages": []}'):
            assert 400 <= (await _post(key, "x", raw=body)).status < 500, body
        assert provider.requests == []
        assert (await _post(key, "x")).status == 200

    async def test_close_ends_it(
        self, open_gateway: Callable[[], Awaitable[Gateway]], gateway: Gateway, provider: Upstream
    ) -> None:
        gateway = await open_gateway()
        key = await gateway.issue(_request(provider))
        await gateway.close()
        await gateway.close()
        with pytest.raises(OSError):
            await _post(key, "x")


def _said(reply: Reply) -> str:
    """The text of an answer, streamed or not."""
    if not reply.headers.get("content-type", "").startswith("text/event-stream"):
        return str(json.loads(reply.body)["choices"][0]["message"]["content"])
    blocks = reply.body.decode().replace("\r\n", "\n").split("\n\n")
    parts = [json.loads(b[5:]) for b in blocks if b.startswith("data:") and not b.endswith("[DONE]")]
    deltas = [choice.get("delta", {}) for part in parts for choice in part.get("choices", ())]
    return "".join(delta.get("content") or "" for delta in deltas)


def _request(provider: Upstream, model: str = MODEL, max_tokens: int | None = None) -> KeyRequest:
    target = ModelTarget(model, "kit", "chat", provider.base_url, ("KIT_PROVIDER_KEY",))
    return KeyRequest("rollout", "agent", (target,), "chat", max_tokens=max_tokens)


async def _exchanges(gateway: Gateway, key: RolloutKey) -> list[Exchange]:
    return [exchange async for exchange in gateway.exchanges(key.id)]


async def _post(
    key: RolloutKey,
    text: str,
    *,
    model: str = MODEL,
    stream: bool = False,
    secret: str | None = None,
    path: str = "/v1/chat/completions",
    extra: Mapping[str, Any] | None = None,
    raw: bytes | None = None,
    pool: ThreadPoolExecutor | None = None,
) -> Reply:
    """One request, as an agent sends it."""
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": text}], **(extra or {})}
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    data = json.dumps(body).encode() if raw is None else raw
    headers = {
        "Authorization": f"Bearer {key.secret if secret is None else secret}",
        "Content-Type": "application/json",
    }

    def call() -> Reply:
        connection = http.client.HTTPConnection(key.endpoint.host, key.endpoint.port, timeout=30)
        began = time.monotonic()
        try:
            connection.request("POST", path, data, headers)
            answer = connection.getresponse()
            received, first = b"", 0.0
            while part := answer.read1(65536):
                first = first or time.monotonic() - began
                received += part
            return Reply(answer.status, received, {k.lower(): v for k, v in answer.getheaders()}, first)
        finally:
            connection.close()

    return await asyncio.get_running_loop().run_in_executor(pool, call)
