"""A gateway that several processes use: over its connection, with its token, and no longer than it lasts."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from benchflow_executor_processes.gateways import GatewayServer, RemoteGateways

from benchflow_core.errors import ConfigurationError, TransportError
from benchflow_core.gateway import Models
from benchflow_core.plugins import registry

from .test_models import ask


@pytest.fixture
def owners(open_models, model_env):
    return open_models(model_env)


@pytest.fixture
def worker(model_env, tmp_path):
    return lambda address: Models(registry(), model_env, lambda: tmp_path / "worker", job=RemoteGateways(address))


@asynccontextmanager
async def served(models):
    server = GatewayServer(models.running)
    try:
        yield await server.address()
    finally:
        await server.close()


async def test_a_worker_uses_the_gateway_of_its_job(owners, worker, tmp_path):
    async with served(owners) as address:
        there = worker(address)
        first, second = [await there.issue("vllm/local-model", rollout=f"r{n}") for n in (1, 2)]
        here = await owners.issue("vllm/local-model", rollout="own")
        assert {i.key.endpoint.port for i in (first, second)} == {here.key.endpoint.port}, "one gateway for all"
        assert await ask(first.endpoint, "[[fake:say text=hi]]") == 200
        usage = await there.usage(first)
        assert usage.output_tokens and not (await there.usage(second)).output_tokens
        found = [exchange async for exchange in there.exchanges(first)]
        assert len(found) == 1 and found[0].usage == usage and found[0].response
        await there.revoke(first)
        assert await ask(first.endpoint, "[[fake:say text=hi]]") == 401
        assert await ask(second.endpoint, "[[fake:say text=hi]]") == 200
        await there.close()
        for _ in range(50):
            if await ask(second.endpoint, "[[fake:say text=hi]]") == 401:
                break
            await asyncio.sleep(0.1)
        else:
            pytest.fail("the keys of a worker that is gone still open something")
        assert await ask(here.endpoint, "[[fake:say text=hi]]") == 200
    assert not list((tmp_path / "worker").glob("gateway-*")), "the worker opened one of its own"


async def test_errors_and_strangers(owners, worker, model_env):
    async with served(owners) as address:
        there = worker(address)
        with pytest.raises(ConfigurationError):
            await RemoteGateways(address).gateway("no-such-gateway", {}).usage("k")
        mine = await there.issue("vllm/local-model", rollout="r1")
        other = RemoteGateways(address).gateway(mine.gateway.name, {})
        with pytest.raises(TransportError, match="another worker"):
            await other.usage(mine.key.id)
        stranger = RemoteGateways({**address, "token": "guess"}).gateway(mine.gateway.name, {})
        with pytest.raises(TransportError, match="out of reach"):
            await stranger.usage(mine.key.id)
        await there.close()
    with pytest.raises(TransportError, match="out of reach"):
        await RemoteGateways(address).gateway("x", {}).usage("k")
