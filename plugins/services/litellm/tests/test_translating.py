"""Every wire to every other: what the agent gets, what is recorded, and what goes wrong."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from itertools import product
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.litellm,
    pytest.mark.xdist_group("litellm"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(600),
]
WIRES = ("chat", "responses", "messages", "gemini")
PAIRS = tuple(product(WIRES, WIRES))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("client", "provider"), PAIRS)
async def test_text_tools_and_tokens_cross(bench: Any, client: str, provider: str, stream: bool) -> None:
    step = {"text": "I look.", "tools": [{"do": "bash", "command": "ls /app"}]}
    bench.model.script("look", [{**step, "usage": {"input": 321, "output": 45}, "model": "local-model-0613"}])
    key = await bench.key(client, provider)
    status, body, headers = await bench.ask(key, client, "[[fake:look]]", stream=stream, tools=True)
    assert status == 200, body
    assert headers["content-type"].startswith("text/event-stream") is stream
    exchange, seen = await bench.last(key), bench.model.log[-1]
    answer = json.dumps(exchange.response)
    assert "I look." in answer and "ls /app" in answer and "bash" in answer
    assert seen.credential == bench.provider_key and seen.model == (
        "local-model" if provider == "gemini" else "org/local-model"
    )
    assert (exchange.usage.input_tokens, exchange.usage.output_tokens) == (321, 45), (
        "what the provider said, not LiteLLM"
    )
    assert (exchange.usage.source, exchange.usage.complete, exchange.error_type) == ("provider_response", True, None)
    assert (exchange.requested_model, exchange.returned_model) == ("org/local-model", "local-model-0613")
    assert (exchange.wire, exchange.streamed) == (client, stream)


@pytest.mark.parametrize(
    ("provider", "wire", "model"),
    [("google-vertex", "chat", "gemini-2.5-flash"), ("anthropic-vertex", "messages", "claude-sonnet-4-5")],
)
async def test_vertex_is_logged_in_to_and_counted(bench: Any, provider: str, wire: str, model: str) -> None:
    """LiteLLM asks it by itself, with a token that it gets for the account."""
    bench.model.script("cloud", [{"text": "From a cloud.", "usage": {"input": 321, "output": 45}}])
    vertex = {"model": model, "provider": provider, "auth": "adc", "credential_env": ()}
    for client, stream in product(WIRES, (False, True)):
        key = await bench.key(client, wire, target=vertex)
        status, body, _ = await bench.ask(key, client, "[[fake:cloud]]", stream=stream, model=model)
        assert status == 200 and "From a cloud." in body, (client, stream, body)
        exchange, seen = await bench.last(key), bench.model.log[-1]
        assert f"/projects/p/locations/global/publishers/{provider.partition('-')[0]}/models/{model}:" in seen.path
        assert seen.credential == bench.provider_key
        if (client, stream, wire) == ("gemini", True, "messages"):  # lost in LiteLLM: unknown, never zero
            assert exchange.usage.input_tokens is None and not exchange.usage.complete
        else:
            assert (exchange.usage.input_tokens, exchange.usage.output_tokens) == (321, 45), (client, stream)
        assert exchange.usage.cost_usd is None, "LiteLLM's own prices are nobody's"


FAULTS = {
    "refused": ({"status": 401, "error": "no such key"}, 401, "credential_refused"),
    "unknown": ({"status": 404, "error": "no such model", "code": "model_not_found"}, 404, "unknown_model"),
    "bad": ({"status": 400, "error": "bad parameter"}, 400, "invalid_request"),
    "slow-down": ({"status": 429, "error": "slow down", "retry_after": 17}, 429, "provider_rate_limited"),
    "busy": ({"status": 529, "error": "overloaded"}, 529, "provider_error"),
    "page": ({"html": True}, 502, "not_a_model_api"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    ("client", "provider"), [("gemini", "chat"), ("messages", "gemini"), ("responses", "gemini"), ("chat", "messages")]
)
async def test_the_providers_no_arrives_as_it_was(bench: Any, client: str, provider: str, fault: str) -> None:
    step, status, kind = FAULTS[fault]
    bench.model.script(fault, [step])
    key = await bench.key(client, provider)
    for stream in (False, True):
        got, body, headers = await bench.ask(key, client, f"[[fake:{fault}]]", stream=stream)
        assert got == status, body
        assert fault != "slow-down" or headers["retry-after"] == "17"
        exchange = await bench.last(key)
        assert (exchange.status, exchange.error_type, exchange.usage.requests) == (status, kind, 1)
        assert "error" not in step or step["error"] in body
    assert len([s for s in bench.model.log if s.scenario == fault]) >= 2


@pytest.mark.parametrize(("client", "provider"), [("gemini", "chat"), ("messages", "chat")])
async def test_a_stream_that_breaks_off_is_known_as_that(bench: Any, client: str, provider: str) -> None:
    bench.model.script("cut", [{"text": "word " * 50, "cut": 4}])
    key = await bench.key(client, provider)
    try:
        await bench.ask(key, client, "[[fake:cut]]", stream=True)
    except OSError:
        pass
    except Exception as error:
        assert "payload" in str(error).lower() or "closed" in str(error).lower()
    exchange = await bench.last(key)
    assert exchange.error_type == "stream_cut" and not exchange.usage.complete


async def test_tokens_that_nobody_reported_are_unknown_and_not_zero(bench: Any) -> None:
    bench.model.script("silent", [{"text": "hello", "no_usage": True}])
    for client, provider in (("gemini", "chat"), ("chat", "messages")):
        key = await bench.key(client, provider)
        await bench.ask(key, client, "[[fake:silent]]", stream=True)
        usage = (await bench.last(key)).usage
        assert usage.input_tokens is None and not usage.complete


async def test_the_proxy_knows_no_key_of_a_provider(bench: Any) -> None:
    await bench.key("chat", "messages")
    pids = [worker.pid for worker in bench.gateway.pool.workers]
    assert pids
    for pid in pids:
        seen = Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
        assert bench.provider_key.encode() not in seen and b"sk-another" not in seen
    files = b"".join(p.read_bytes() for p in bench.folder.rglob("*") if p.is_file() and p.suffix != ".jsonl")
    assert bench.provider_key.encode() not in files and bench.gateway.pool.secret.encode() not in files


@pytest.mark.parametrize("field", ["api_base", "base_url", "api_key", "fallbacks", "mock_response", "extra_headers"])
async def test_a_body_cannot_choose_where_it_goes(bench: Any, field: str) -> None:
    key = await bench.key("messages", "chat")
    before = len(bench.model.log)
    status, body, _ = await bench.ask(key, "messages", "hello", **{field: "http://127.0.0.1:1"})
    assert status == 400 and field in body and len(bench.model.log) == before


async def test_tools_of_the_provider_are_refused_without_network(bench: Any) -> None:
    key = await bench.key("messages", "chat", allow_provider_tools=False)
    search = {"type": "web_search_20250305", "name": "web_search"}
    status, body, _ = await bench.ask(key, "messages", "x", tools=[search])
    assert status == 400 and "web_search" in body


async def test_strangers_reach_neither_half(bench: Any) -> None:
    key = await bench.key("chat", "messages")
    await bench.ask(key, "chat", "hello")
    before = len(bench.model.log)
    worker = bench.gateway.pool.workers[0]
    body = {"model": "messages/org/local-model", "messages": [{"role": "user", "content": "x"}]}
    for secret in (key.secret, "", "sk-1234"):
        headers = {"authorization": f"Bearer {secret}", "x-benchflow-route": "messages", "x-benchflow-call": "x"}
        async with bench.http.post(f"{worker.url}/v1/chat/completions", json=body, headers=headers) as response:
            assert response.status >= 400
    back = f"http://127.0.0.1:{bench.gateway._back.port}/v1/messages"
    for headers in (
        {},
        {"x-api-key": bench.gateway.pool.secret},
        {"x-api-key": bench.gateway.pool.secret, "x-benchflow-call": "guess"},
    ):
        async with bench.http.post(back, json=body, headers=headers) as response:
            assert response.status == 401
    assert len(bench.model.log) == before


async def test_a_recording_is_replayed_without_asking_anybody(bench: Any, tmp_path: Path) -> None:
    bench.model.script("twice", [{"text": "the very words"}])
    key = await bench.key("messages", "chat", record=True)
    _, first, _ = await bench.ask(key, "messages", "[[fake:twice]]", stream=True)
    exchange = await bench.last(key)
    line = {n: getattr(exchange, n) for n in ("wire", "status", "error_type", "content_type", "answer", "request")}
    (tmp_path / "r.jsonl").write_text(json.dumps(line) + "\n")
    before = len(bench.model.log)
    again = await bench.key("messages", "chat", replay=tmp_path / "r.jsonl")
    _, second, _ = await bench.ask(again, "messages", "[[fake:twice]]", stream=True)
    assert second == first and len(bench.model.log) == before
    assert (await bench.last(again)).replayed == "exact"
    assert (await bench.ask(again, "messages", "something else", stream=True))[0] == 200
    assert len(bench.model.log) == before + 1, "what the recording does not hold is translated as ever"


async def test_a_proxy_that_dies_is_started_again(bench: Any) -> None:
    key = await bench.key("chat", "messages")
    assert (await bench.ask(key, "chat", "hello"))[0] == 200
    worker = bench.gateway.pool.workers[0]
    starts, pid = worker.starts, worker.pid
    os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(300):
        while (await bench.ask(key, "chat", "hello"))[0] != 200:
            await asyncio.sleep(0.2)
    assert worker.starts == starts + 1 and worker.pid != pid
