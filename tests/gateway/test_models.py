"""A job's models: keys, gateways opened once, the way into a box, and what they say afterwards."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchflow_core.contracts import Exchange, ModelEndpoint, Usage
from benchflow_core.errors import (
    ConfigurationError,
    CredentialRefused,
    ProviderError,
    ProviderRateLimited,
    UnknownModel,
)
from benchflow_core.gateway import (
    GatewayUse,
    Models,
    failure_of,
    probe,
    turn_failure,
    turn_verdict,
    write_llm_trajectory,
)
from benchflow_core.results.redact import Redactor

PYTHON = {"python": sys.executable}
MODELS = {"chat": "vllm/local-model", "responses": "openai/local-model", "messages": "anthropic/local-model"}
MODELS["gemini"] = "gemini/local-model"


async def ask(endpoint: ModelEndpoint, prompt: str) -> int:
    """One chat request; its status."""

    def send() -> int:
        body = {"model": endpoint.model, "messages": [{"role": "user", "content": prompt}]}
        headers = {"authorization": f"Bearer {endpoint.key}"}
        url = f"{endpoint.base_url}/v1/chat/completions"
        try:
            with urllib.request.urlopen(
                urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=20
            ) as r:
                return int(r.status)
        except urllib.error.HTTPError as error:
            return error.code

    return await asyncio.to_thread(send)


@pytest.fixture
def models(open_models: Callable[..., Models], model_env: dict[str, str]) -> Models:
    return open_models(model_env)


@pytest.mark.parametrize("wire", MODELS)
async def test_a_model_is_reached_without_translation_where_that_is_possible(models: Models, wire: Any) -> None:
    issued = await models.issue(MODELS[wire], rollout="r", wires=(wire,))
    assert (issued.endpoint.wire, issued.target.wire, issued.endpoint.model) == (wire, wire, "local-model")
    assert issued.key.secret == issued.endpoint.key
    assert issued.key.secret not in repr(issued) and issued.key.secret not in json.dumps(issued.describe())


async def test_the_gateway_is_opened_once_and_keys_are_apart(models: Models) -> None:
    one = await models.issue(MODELS["chat"], rollout="one", wires=("chat",))
    two = await models.issue(MODELS["chat"], rollout="two", wires=("chat",), purpose="judge")
    assert one.endpoint.base_url == two.endpoint.base_url and one.key.secret != two.key.secret
    assert await ask(one.endpoint, "hello") == 200
    assert (await models.usage(one)).requests == 1 and (await models.usage(two)).requests == 0
    await models.revoke(one)
    assert (await ask(one.endpoint, "hello"), await ask(two.endpoint, "hello")) == (401, 200)


TRANSLATORS = ("benchflow-service-litellm",)


async def test_no_gateway_that_carries_it_is_said(open_models: Any, model_env: Any) -> None:
    models = open_models(model_env, without=TRANSLATORS)
    with pytest.raises(ConfigurationError) as caught:
        models.plan("anthropic/claude-x", ("chat",))
    said = str(caught.value)
    assert "carries an agent that speaks chat to 'anthropic/claude-x', which speaks messages" in said
    vertex = open_models({"GOOGLE_CLOUD_PROJECT": "p"}, without=TRANSLATORS)
    with pytest.raises(ConfigurationError, match="a login of kind 'adc'"):
        vertex.plan("google-vertex/x", ("chat",))
    with pytest.raises(ConfigurationError, match="nothing-like-it"):
        open_models(model_env).plan(MODELS["chat"], ("chat",), use=GatewayUse(gateway="nothing-like-it"))


@pytest.mark.parametrize(
    ("setting", "statuses"), [("same", (200, 200, 404)), ("own", (200, 200, 404)), ("refuse", (404, 404, 404))]
)
async def test_helper_models_are_answered_as_asked_for(
    models: Models, local_model: Any, setting: Any, statuses: Any
) -> None:
    use = GatewayUse(helper_models=setting)
    issued = await models.issue(MODELS["chat"], rollout="r", wires=("chat",), helpers=("small-*", "tiny"), use=use)
    names = ("small-1", "tiny", "other")
    for name, status in zip(names, statuses, strict=True):
        endpoint = ModelEndpoint(issued.endpoint.base_url, issued.key.secret, "chat", name)
        assert await ask(endpoint, "hello") == status
    main = issued.target.model
    sent = {"same": [main, main], "own": ["small-1", "tiny"], "refuse": []}[setting]
    assert [seen.model for seen in local_model.log] == sent
    exchanges = [exchange async for exchange in models.exchanges(issued)]
    assert [exchange.requested_model for exchange in exchanges] == list(names)
    assert [exchange.answered_by for exchange in exchanges] == ([main, main, None] if setting == "same" else [None] * 3)
    usage = await models.usage(issued)
    assert usage.requests == len(sent) and bool(usage.input_tokens) == bool(sent)


async def test_a_helper_without_a_price_is_refused_under_a_spending_cap(
    open_models: Any, model_env: Any, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.json"
    main = MODELS["chat"]
    prices.write_text(json.dumps({main: {"input": 1, "output": 1}, "vllm/tiny": {"input": 2, "output": 2}}))
    models = open_models({**model_env, "BENCHFLOW_PRICES": str(prices)})
    use = GatewayUse(helper_models="own", max_cost_usd=1.0)
    issued = await models.issue(main, rollout="r", wires=("chat",), helpers=("small", "tiny"), use=use)
    for name, status in (("small", 403), ("tiny", 200)):
        endpoint = ModelEndpoint(issued.endpoint.base_url, issued.key.secret, "chat", name)
        assert await ask(endpoint, "hello") == status
    refused, answered = [exchange async for exchange in models.exchanges(issued)]
    assert refused.error_type == "budget" and "vllm/small" in refused.error
    assert answered.usage.cost_usd == (answered.usage.input_tokens + answered.usage.output_tokens) * 2 / 1e6


async def test_a_model_is_shown_inside_a_box(models: Models, host_box: Any) -> None:
    issued = await models.issue(MODELS["chat"], rollout="r", wires=("chat",))
    other = await models.issue(MODELS["chat"], rollout="r", wires=("chat",))
    inside = await models.into_box(issued, host_box, PYTHON)
    assert inside.base_url != issued.endpoint.base_url and inside.key == issued.endpoint.key
    assert await ask(inside, "hello") == 200
    assert (await models.into_box(other, host_box, PYTHON)).base_url == inside.base_url, "one tunnel per box"
    assert len(host_box.processes) == 1
    assert issued.key.secret not in repr(host_box.argv)
    await host_box.kill_all()
    again = await models.into_box(issued, host_box, PYTHON)
    assert again.base_url == inside.base_url, "what an agent was configured with stays true"
    assert await ask(again, "hello") == 200
    await models.leave(host_box)
    await models.leave(host_box)
    with pytest.raises(OSError):
        await ask(again, "hello")


async def test_closing_ends_everything(models: Models, host_box: Any) -> None:
    issued = await models.issue(MODELS["chat"], rollout="r", wires=("chat",))
    await models.into_box(issued, host_box, PYTHON)
    await models.close()
    await models.close()
    assert all(process._child.returncode is not None for process in host_box.processes)
    with pytest.raises(OSError):
        await ask(issued.endpoint, "hello")


async def test_a_job_without_models_leaves_no_trace(tmp_path: Path, open_models: Any) -> None:
    await open_models({}).close()
    assert list(tmp_path.iterdir()) == []


# --- before a fleet starts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", MODELS)
async def test_a_probe_says_nothing_where_all_is_well(
    models: Models, model_env: Any, local_model: Any, wire: Any
) -> None:
    await probe(models, MODELS[wire], model_env, (wire,))
    assert [seen.wire for seen in local_model.log] == [wire]
    for fault in ({"status": 429}, {"status": 400}):
        local_model.fault(**fault)
        await probe(models, MODELS[wire], model_env, (wire,))


@pytest.mark.parametrize("wire", MODELS)
async def test_a_refused_key_is_that_within_seconds(
    open_models: Any, model_env: Any, local_model: Any, wire: Any
) -> None:
    wrong = {name: "sk-wrong-key" if name.endswith("_KEY") else value for name, value in model_env.items()}
    with pytest.raises(CredentialRefused) as caught:
        await probe(open_models(wrong), MODELS[wire], wrong, (wire,))
    assert "sk-wrong-key" not in str(caught.value) and caught.value.details["status"] == 401


@pytest.mark.parametrize("wire", MODELS)
async def test_an_unknown_model_comes_with_the_nearest(
    models: Models, model_env: Any, local_model: Any, wire: Any
) -> None:
    local_model.models, local_model.known_only = ("local-model", "zzz"), True
    with pytest.raises(UnknownModel) as caught:
        await probe(models, MODELS[wire].replace("local-model", "locale-model"), model_env, (wire,))
    assert "does not know the model 'locale-model'" in caught.value.message
    assert caught.value.remedy == "Nearest that it knows: local-model."


async def test_a_provider_that_is_no_model_api(models: Models, model_env: Any, local_model: Any) -> None:
    local_model.fault(html=True)
    with pytest.raises(ProviderError, match="base URL") as caught:
        await probe(models, MODELS["chat"], model_env, ("chat",))
    assert not caught.value.retryable
    local_model.fault(status=403)
    with pytest.raises(CredentialRefused):
        await probe(models, MODELS["chat"], model_env, ("chat",))


# --- what exchanges say ----------------------------------------------------------------------------------------


def exchange(status: int = 200, error_type: str | None = None, error: str | None = None) -> Exchange:
    return Exchange("k", 0.0, 0.1, "chat", "/p", {}, None, status, Usage(), "m", None, False, error, error_type)


@pytest.mark.parametrize(
    ("error_type", "expected", "retryable"),
    [
        ("credential_refused", CredentialRefused, False),
        ("unknown_model", UnknownModel, False),
        ("provider_rate_limited", ProviderRateLimited, True),
        ("provider_error", ProviderError, True),
        ("stream_cut", ProviderError, True),
        ("unreachable", ProviderError, True),
        ("invalid_request", ProviderError, False),
        ("no_credit", ProviderError, False),
        ("budget", ProviderError, False),
    ],
)
def test_a_failed_exchange_is_an_error_of_its_type(error_type: str, expected: type, retryable: bool) -> None:
    found = failure_of(exchange(500, error_type, "words"))
    assert type(found) is expected and found.retryable is retryable and "words" in found.message


def test_a_turn_fails_only_when_every_call_did() -> None:
    bad, worse = exchange(529, "provider_error", "busy"), exchange(401, "credential_refused", "no")
    gone = exchange(499, "client_gone")
    assert turn_failure([]) is None and turn_failure([exchange()]) is None and turn_failure([gone]) is None
    assert turn_failure([bad, worse, exchange()]) is None, "a call that was retried is no failure of the turn"
    found = turn_failure([bad, gone, worse])
    assert isinstance(found, CredentialRefused) and found.details["failed_requests"] == 2


def test_a_turn_that_ends_on_a_call_which_the_provider_failed_has_failed() -> None:
    """Codex and pi end it as if nothing had happened: half a turn is not the agent's."""
    bad, wrong = exchange(529, "provider_error", "busy"), exchange(400, "invalid_request", "too long")
    found = turn_failure([exchange(), bad, bad])
    assert found is not None and found.retryable and found.details["failed_requests"] == 2
    assert turn_failure([exchange(), bad, exchange(499, "client_gone")]) is not None
    assert turn_failure([exchange(), bad], ended=False) is None, "it was stopped, and might have tried again"
    assert turn_failure([exchange(), wrong]) is None, "what it asked for was wrong: that is its own doing"
    assert turn_failure([exchange(), exchange(403, "budget")]) is None, "a cap ends a turn, it does not void it"
    assert turn_failure([exchange(), exchange(409, "replay_diverged")]) is not None


async def test_a_turn_is_judged_by_what_came_since_the_last_one() -> None:
    async def stream(since: int = 0) -> Any:
        found = (exchange(), exchange(529, "provider_error"), exchange(200), exchange(500, "provider_error"))
        for one in found[since:]:
            yield one

    def all_count(_: Exchange) -> bool:
        return True

    assert await turn_verdict(stream(), all_count, ended=False) == (None, 4)
    failure, count = await turn_verdict(stream(3), all_count)
    assert failure is not None and failure.details["status"] == 500 and count == 1
    failure, _ = await turn_verdict(stream(1), lambda e: e.status != 200)
    assert failure is not None and failure.details["failed_requests"] == 2
    assert await turn_verdict(stream(4), all_count) == (None, 0)


async def test_the_trajectory_is_complete_and_holds_no_secret(models: Models, tmp_path: Path, local_model: Any) -> None:
    issued = await models.issue(MODELS["chat"], rollout="r", wires=("chat",))
    await ask(issued.endpoint, f"my key is {issued.key.secret}")
    local_model.fault(status=500, error="boom")
    await ask(issued.endpoint, "hello")
    path = tmp_path / "trajectory" / "llm_trajectory.jsonl"

    def purpose(exchange: Exchange, role: str) -> str:
        return role if exchange.status == 200 else str(1 / 0)

    async def placed() -> Any:
        async for exchange in models.exchanges(issued):
            yield exchange, {"role": "agent", "turn": 1}

    redactor = Redactor([issued.key.secret, local_model.key])
    assert await write_llm_trajectory(path, placed(), purpose, redactor) == 2
    text = path.read_text()
    assert issued.key.secret not in text and local_model.key not in text
    first, second = map(json.loads, text.splitlines())
    assert first["request"]["body"]["messages"][0]["content"] == "my key is [redacted]"
    assert first["response"]["status_code"] == 200 and first["usage"]["input_tokens"] > 0
    assert first["metadata"]["turn"] == 1
    assert first["metadata"]["call_purpose"] == "agent" and first["metadata"]["request_model"] == "local-model"
    assert second["error"] == {"type": "provider_error", "message": "HTTP 500: boom"}
    assert second["metadata"]["call_purpose"] == "unknown"
    assert [p.name for p in path.parent.iterdir()] == ["llm_trajectory.jsonl"]
