"""The two that run on every change, in the other places: a container engine, and the gateway that translates."""

from __future__ import annotations

import importlib

import pytest

from benchflow_core.errors import ProviderError
from benchflow_core.plugins import registry

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]
CONTENT = "hello from the local model\n"


def engine() -> str:
    """Why there is no container engine; empty where there is one."""
    if "docker" not in registry().names("sandbox"):
        return "the Docker sandbox is not installed"
    found = registry().get("sandbox", "docker").spec.available()
    return "" if found.ok else f"no Docker engine: {found.reason}"


def translator() -> str:
    """Why LiteLLM cannot be used; tests never install it, it is large."""
    if "litellm" not in registry().names("gateway"):
        return "the LiteLLM gateway is not installed"
    environment = importlib.import_module("benchflow_service_litellm.environment").LiteLLMEnvironment.of_process()
    return "" if environment.installed else "needs LiteLLM's environment: run scripts/litellm_env.sh"


NO_ENGINE, NO_TRANSLATOR = engine(), translator()


async def a_turn_and_a_failure(live):
    assert await live.prompt("[[fake:write-hello path=/app/made.txt]]") == "end_turn"
    assert await live.read("/app/made.txt") == CONTENT
    assert len(live.events("tool_call")) == 1
    assert [e.status for e in await live.exchanges()] == [200, 200]
    with pytest.raises(ProviderError) as failed:
        await live.prompt("[[fake:fail]]")
    assert failed.value.details["status"] == 400
    usage = (await live.rollout.cleanup()).usage
    assert usage.source == "provider_response" and usage.input_tokens > 0


@pytest.mark.docker
@pytest.mark.skipif(bool(NO_ENGINE), reason=NO_ENGINE)
@pytest.mark.xdist_group("docker")
@pytest.mark.parametrize(("agent", "model"), [("pi", "anthropic/local-model"), ("opencode", "openai/local-model")])
async def test_in_a_container(connect, agent, model):
    await a_turn_and_a_failure(await connect(agent, model, "docker"))


@pytest.mark.litellm
@pytest.mark.skipif(bool(NO_TRANSLATOR), reason=NO_TRANSLATOR)
@pytest.mark.xdist_group("litellm")
@pytest.mark.parametrize(
    ("agent", "model", "place"),
    [
        ("pi", "anthropic/local-model", "local"),
        pytest.param(
            "opencode",
            "vllm/local-model",
            "docker",
            marks=[pytest.mark.docker, pytest.mark.skipif(bool(NO_ENGINE), reason=NO_ENGINE)],
        ),
    ],
)
async def test_through_the_translating_gateway(connect, agent, model, place):
    live = await connect(agent, model, place, gateway="litellm")
    assert live.rollout.plan.gateways[0].name == "litellm"
    await a_turn_and_a_failure(live)
