"""From a model's name to its provider."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchflow_core.contracts import ModelTarget
from benchflow_core.errors import ConfigurationError
from benchflow_core.gateway.resolve import find_provider, providers_of, targets_of
from benchflow_core.plugins import Policy, Registry, registry

PROVIDERS = providers_of(registry())
KEYS = {c.env: f"value-of-{c.env}" for p in PROVIDERS.values() for c in p.credentials}


def resolve_model(model: str, env: Mapping[str, str], *given: Any, **more: Any) -> ModelTarget:
    """Return the model on the wire that comes first."""
    return targets_of(model, env, PROVIDERS, *given, **more)[0]


def test_without_a_gateway_nobody_knows_a_provider() -> None:
    names = {gateway.called for gateway in registry().all("gateway")}
    with pytest.raises(ConfigurationError, match="no gateway is installed that knows a provider of models"):
        providers_of(Registry(Policy(blocked=tuple(f"gateway:{name}" for name in names))))


@pytest.mark.parametrize(
    ("model", "provider", "name"),
    [
        ("openai/gpt-5", "openai", "gpt-5"),
        ("gpt-5-mini", "openai", "gpt-5-mini"),
        ("o3", "openai", "o3"),
        ("claude-haiku-4-5-20251001", "anthropic", "claude-haiku-4-5-20251001"),
        ("gemini-3.5-flash", "gemini", "gemini-3.5-flash"),
        ("gemini/gemini-3.1-flash-lite-preview", "gemini", "gemini-3.1-flash-lite-preview"),
        ("openrouter/anthropic/claude-sonnet-4.5", "openrouter", "anthropic/claude-sonnet-4.5"),
        ("vllm/Qwen/Qwen3-8B", "vllm", "Qwen/Qwen3-8B"),
        ("zai/glm-5.1", "zai", "glm-5.1"),
        ("glm-5.1", "glm", "glm-5.1"),
        ("kimi-k2", "kimi", "kimi-k2"),
        ("moonshot-v1", "kimi", "moonshot-v1"),
        ("MiniMax-M2", "minimax", "MiniMax-M2"),
        ("doubao-seed-2-pro-251115", "doubao-seed-2-pro", "doubao-seed-2-pro-251115"),
        ("aws-bedrock/us.anthropic.claude-opus-4-8", "aws-bedrock", "us.anthropic.claude-opus-4-8"),
        ("azure-foundry-openai/gpt-5.5", "azure-foundry-openai", "gpt-5.5"),
    ],
)
def test_the_provider_of_a_model(model: str, provider: str, name: str) -> None:
    found, own = find_provider(model, PROVIDERS)
    assert (found.name, own) == (provider, name)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            "antropic/claude-x",
            "unknown model provider 'antropic' in 'antropic/claude-x'. Did you mean anthropic/claude-x?",
        ),
        ("Qwen/Qwen3-8B", "unknown model provider 'Qwen'"),
        ("llama-4", "the provider of model 'llama-4' is not clear"),
        ("openai/", "is not a model"),
        ("", "is not a model"),
    ],
)
def test_an_unknown_provider_is_named_with_the_nearest(model: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve_model(model, KEYS)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_credential_names_its_variables() -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve_model("gemini-3.5-flash", {"GEMINI_API_KEY": ""})
    assert "GEMINI_API_KEY or GOOGLE_API_KEY is not set" in str(caught.value)
    target = resolve_model("gemini-3.5-flash", {"GOOGLE_API_KEY": "x"})
    assert target.credential_env == ("GOOGLE_API_KEY",)


def test_an_agents_own_variable_may_stand_in() -> None:
    target = resolve_model("openai/gpt-5", {"LLM_API_KEY": "x"}, also=("LLM_API_KEY",))
    assert target.credential_env == ("LLM_API_KEY",)
    both = resolve_model("openai/gpt-5", {"LLM_API_KEY": "x", "OPENAI_API_KEY": "y"}, also=("LLM_API_KEY",))
    assert both.credential_env == ("OPENAI_API_KEY",)


def test_the_wire_is_the_first_of_the_agents_that_the_provider_speaks() -> None:
    assert resolve_model("gpt-5", KEYS, ("chat", "responses")).wire == "chat"
    assert resolve_model("gpt-5", KEYS, ("messages", "responses")).wire == "responses"
    assert resolve_model("claude-x", KEYS, ("chat",)).wire == "messages", "the provider's own, to be translated"
    assert [t.wire for t in targets_of("zai/glm-5", KEYS, PROVIDERS, ("messages",))] == [
        "messages",
        "chat",
        "responses",
    ]


URLS: list[tuple[str, Any, dict[str, str], str]] = [
    ("gpt-5", "chat", {}, "https://api.openai.com/v1"),
    ("gpt-5", "chat", {"OPENAI_BASE_URL": "http://h:1/v1/"}, "http://h:1/v1"),
    ("gpt-5", "chat", {"OPENAI_API_BASE": "http://h:2/v1"}, "http://h:2/v1"),
    ("us-openai/gpt-5", "chat", {"OPENAI_BASE_URL": "http://h:1/v1"}, "https://us.api.openai.com/v1"),
    ("claude-x", "messages", {"ANTHROPIC_BASE_URL": "http://h:3"}, "http://h:3"),
    ("gemini-x", "gemini", {"GEMINI_BASE_URL": "http://h:4"}, "http://h:4"),
    ("gemini-x", "gemini", {"GOOGLE_GEMINI_BASE_URL": "http://h:5", "GEMINI_BASE_URL": "http://h:4"}, "http://h:5"),
    ("gemini-x", "chat", {"GEMINI_BASE_URL": "http://h:4"}, "http://h:4/v1beta/openai"),
    ("zai/glm-5", "messages", {}, "https://api.z.ai/api/anthropic"),
    ("vllm/m", "chat", {"BENCHFLOW_PROVIDER_BASE_URL": "http://h:6/v1"}, "http://h:6/v1"),
    ("deepseek-x", "chat", {}, "https://api.deepseek.com/v1"),
    ("deepseek-x", "chat", {"DEEPSEEK_BASE_URL": "http://h:7"}, "http://h:7"),
    ("azure-foundry-openai/x", "responses", {"AZURE_RESOURCE": "mine"}, "https://mine.openai.azure.com/openai/v1"),
    (
        "azure-foundry-openai/x",
        "chat",
        {"AZURE_API_ENDPOINT": "https://mine.openai.azure.com/"},
        "https://mine.openai.azure.com/openai/v1",
    ),
    (
        "azure-foundry-anthropic/x",
        "messages",
        {"AZURE_API_ENDPOINT": "https://mine.openai.azure.com"},
        "https://mine.services.ai.azure.com/anthropic",
    ),
    ("azure-foundry-anthropic/x", "messages", {"AZURE_API_ENDPOINT": "http://h:8"}, "http://h:8/anthropic"),
    ("aws-bedrock/x", "messages", {"AWS_REGION": "eu-west-1"}, "https://bedrock-runtime.eu-west-1.amazonaws.com"),
]


@pytest.mark.parametrize(("model", "wire", "env", "url"), URLS)
def test_where_a_provider_is(model: str, wire: Any, env: dict[str, str], url: str) -> None:
    target = resolve_model(model, {**KEYS, **env}, (wire,))
    assert (target.base_url, target.wire) == (url, wire)


@pytest.mark.parametrize(
    ("model", "env", "said"),
    [
        ("vllm/m", {}, "BENCHFLOW_PROVIDER_BASE_URL"),
        ("kimi-k2", {}, "KIMI_BASE_URL"),
        ("azure-foundry-openai/x", {}, "AZURE_RESOURCE or AZURE_API_ENDPOINT is not set"),
        ("google-vertex/x", {}, "GOOGLE_CLOUD_PROJECT is not set"),
        ("gpt-5", {"OPENAI_BASE_URL": "api.openai.com"}, "is not one: 'api.openai.com'"),
    ],
)
def test_an_address_that_is_missing_or_wrong(model: str, env: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve_model(model, {**KEYS, **env})
    assert said in str(caught.value)


def test_how_a_credential_is_presented() -> None:
    assert resolve_model("claude-x", {"ANTHROPIC_AUTH_TOKEN": "t"}).auth == "bearer"
    assert resolve_model("claude-x", {"ANTHROPIC_API_KEY": "t"}).auth == "key"
    assert resolve_model("google-vertex/x", {"GOOGLE_CLOUD_PROJECT": "p"}).auth == "adc"
    bedrock = {"AWS_REGION": "r", "AWS_BEARER_TOKEN_BEDROCK": "t", "BENCHFLOW_BEDROCK_THINKING_EFFORT": "max"}
    target = resolve_model("aws-bedrock/x", bedrock)
    assert target.auth == "aws" and target.params == {"region": "r", "thinking_effort": "max"}
    local = resolve_model("vllm/m", {"BENCHFLOW_PROVIDER_BASE_URL": "http://h/v1"})
    assert local.credential_env == ()


def test_prices_come_from_the_users_file(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"openai/gpt-5": {"input": 1.25, "output": 10, "cache_read": 0.125}}))
    env = {**KEYS, "BENCHFLOW_PRICES": str(file)}
    assert resolve_model("gpt-5", env).prices == {"input": 1.25, "output": 10.0, "cache_read": 0.125}
    assert resolve_model("gpt-5-mini", env).prices == {}
    for number, wrong in enumerate(("[]", '{"m": {"input": 1}}', '{"m": {"input": 1, "output": -1}}', "nonsense")):
        other = tmp_path / f"{number}.json"
        other.write_text(wrong)
        with pytest.raises(ConfigurationError, match="BENCHFLOW_PRICES"):
            resolve_model("gpt-5", {**KEYS, "BENCHFLOW_PRICES": str(other)})


def test_every_provider_can_be_resolved() -> None:
    values = {variable: "https://x.example" for p in PROVIDERS.values() for variable in p.base_url_env}
    values |= {
        v: "value" for p in PROVIDERS.values() for q in p.parameters.values() for v in q.env if "ENDPOINT" not in v
    }
    for name, provider in PROVIDERS.items():
        targets = targets_of(f"{name}/model", {**KEYS, **values}, PROVIDERS)
        assert {t.wire for t in targets} == set(provider.endpoints)
        assert all("{" not in t.base_url and t.base_url.startswith("https://") for t in targets)
