"""Every wire, streamed and not: what arrives at each side, and what is written down."""

from __future__ import annotations

import json
from typing import Any

import pytest
from benchflow_testing import Step

WIRES = ("chat", "responses", "messages", "gemini")
USAGE = {"input": 100, "output": 20, "cached": 40, "reasoning": 5}


@pytest.fixture(autouse=True)
def scripted(bench: Any) -> None:
    tools = [{"do": "bash", "command": "echo 'häh'"}]
    bench.model.script("turn", [Step("It is done. " * 9, think="Let me see.", tools=tools, usage=USAGE, model="v2")])


def without_ids(value: Any) -> Any:
    """The local model makes new ids for each answer."""
    if isinstance(value, dict):
        moving = ("id", "call_id", "responseId", "created", "created_at", "item_id")
        return {k: without_ids(v) for k, v in value.items() if k not in moving}
    return [without_ids(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("wire", WIRES)
async def test_an_answer_passes_unchanged_and_is_recorded(bench: Any, wire: Any) -> None:
    key = await bench.key(wire)
    status, raw, headers = await bench.ask(key, wire, "[[fake:turn]]", tools=True)
    assert status == 200 and headers["content-type"].startswith("application/json")
    (seen,) = bench.model.log
    assert seen.credential == bench.words.provider_key
    assert key.secret not in json.dumps(dict(seen.headers))
    (exchange,) = await bench.exchanges(key)
    assert exchange.response == json.loads(raw)
    assert exchange.request == seen.body == bench.words.body(wire, "[[fake:turn]]", tools=True)
    assert (exchange.status, exchange.error, exchange.error_type, exchange.streamed) == (200, None, None, False)
    assert (exchange.wire, exchange.key_id, exchange.returned_model) == (wire, key.id, "v2")
    assert exchange.requested_model == "local-model"


@pytest.mark.parametrize("wire", WIRES)
async def test_a_stream_is_recorded_as_the_answer_it_would_have_been(bench: Any, wire: Any) -> None:
    key = await bench.key(wire)
    _, raw, _ = await bench.ask(key, wire, "[[fake:turn]]", tools=True)
    status, _, headers = await bench.ask(key, wire, "[[fake:turn]]", tools=True, stream=True)
    assert status == 200 and headers["content-type"].startswith("text/event-stream")
    whole, streamed = await bench.exchanges(key)
    expected, got = without_ids(json.loads(raw)), without_ids(streamed.response)
    if wire == "chat":
        for call in got["choices"][0]["message"]["tool_calls"]:
            assert call.pop("index") == 0
    assert got == expected
    assert streamed.streamed and not whole.streamed
    assert streamed.error is None and streamed.returned_model == "v2"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
async def test_usage_is_counted_alike_on_every_wire(bench: Any, wire: Any, stream: bool) -> None:
    key = await bench.key(wire)
    await bench.ask(key, wire, "[[fake:turn]]", tools=True, stream=stream)
    (exchange,) = await bench.exchanges(key)
    usage = exchange.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (100, 25, 40)
    assert (usage.source, usage.complete, usage.cost_usd) == ("provider_response", True, None)
    await bench.ask(key, wire, "[[fake:turn]]", tools=True, stream=stream)
    total = await bench.relay.usage(key.id)
    assert (total.input_tokens, total.output_tokens, total.requests) == (200, 50, 2)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_stream_passes_byte_for_byte(bench: Any, wire: Any) -> None:
    asked = {"stream_options": {"include_usage": True}} if wire == "chat" else {}
    key = await bench.key(wire)
    _, through, _ = await bench.ask(key, wire, "[[fake:turn]]", tools=True, stream=True, **asked)
    path, body = bench.words.path(wire, stream=True), bench.words.body(wire, "[[fake:turn]]", tools=True, stream=True)
    async with bench.http.post(bench.model.base_url + path, json={**body, **asked}) as response:
        direct = await response.read()

    def events(raw: bytes) -> list[Any]:
        separator = b"\r\n\r\n" if wire == "gemini" else b"\n\n"
        lines = [event.partition(b"data: ")[2] for event in raw.split(separator) if event]
        return [without_ids(json.loads(line)) if line.startswith(b"{") else line for line in lines]

    assert events(through) == events(direct)
    assert len(through) == len(direct)


async def test_a_usage_event_nobody_asked_for_is_counted_but_not_shown(bench: Any) -> None:
    key = await bench.key("chat")
    _, raw, _ = await bench.ask(key, "chat", "[[fake:turn]]", tools=True, stream=True)
    assert bench.model.log[0].body["stream_options"] == {"include_usage": True}
    assert b'"choices": []' not in raw and raw.endswith(b"data: [DONE]\n\n")
    (exchange,) = await bench.exchanges(key)
    assert exchange.usage.input_tokens == 100
    assert "stream_options" not in exchange.request


@pytest.mark.parametrize(
    ("options", "sent", "counted"),
    [
        ({"include_usage": False}, {"include_usage": False}, None),
        ({"include_obfuscation": False}, {"include_obfuscation": False, "include_usage": True}, 100),
    ],
)
async def test_what_the_client_said_about_usage_holds(bench: Any, options: Any, sent: Any, counted: Any) -> None:
    key = await bench.key("chat")
    await bench.ask(key, "chat", "[[fake:turn]]", tools=True, stream=True, stream_options=options)
    assert bench.model.log[0].body["stream_options"] == sent
    (exchange,) = await bench.exchanges(key)
    assert exchange.usage.input_tokens == counted
    assert (await bench.relay.usage(key.id)).complete is (counted is not None)


async def test_a_provider_that_refuses_stream_options_is_asked_without(bench: Any) -> None:
    bench.model.fault(status=400, error="unknown field stream_options")
    key = await bench.key("chat")
    for expected in (2, 3):
        status, raw, _ = await bench.ask(key, "chat", "[[fake:say text=fine]]", stream=True)
        assert status == 200 and b"fine" in raw
        assert len(bench.model.log) == expected, "the provider is remembered"
    assert [("stream_options" in seen.body) for seen in bench.model.log] == [True, False, False]
    assert [e.status for e in await bench.exchanges(key)] == [200, 200]


async def test_usage_that_was_not_reported_is_unknown_and_never_zero(bench: Any) -> None:
    bench.model.script("mute", [Step("hm", no_usage=True)])
    for wire in WIRES:
        for stream in (False, True):
            key = await bench.key(wire)
            await bench.ask(key, wire, "[[fake:mute]]", stream=stream)
            (exchange,) = await bench.exchanges(key)
            assert exchange.error is None, (wire, stream)
            assert (exchange.usage.input_tokens, exchange.usage.output_tokens) == (None, None)
            assert exchange.usage.source == "unavailable" and not exchange.usage.complete
            total = await bench.relay.usage(key.id)
            assert (total.input_tokens, total.requests, total.complete) == (None, 1, False)


async def test_cost_is_known_where_prices_are(bench: Any) -> None:
    key = await bench.key("messages", target={"prices": {"input": 3.0, "output": 15.0, "cache_read": 0.3}})
    await bench.ask(key, "messages", "[[fake:turn]]", tools=True)
    expected = (60 * 3.0 + 40 * 0.3 + 25 * 15.0) / 1e6
    assert (await bench.relay.usage(key.id)).cost_usd == pytest.approx(expected)


async def test_gemini_without_events_streams_a_json_array(bench: Any) -> None:
    key = await bench.key("gemini")
    path = "/v1beta/models/local-model:streamGenerateContent"
    status, raw, _ = await bench.post(key, path, bench.words.body("gemini", "[[fake:turn]]", tools=True))
    assert status == 200 and isinstance(json.loads(raw), list)
    (exchange,) = await bench.exchanges(key)
    assert exchange.streamed and exchange.usage.input_tokens == 100
    parts = exchange.response["candidates"][0]["content"]["parts"]
    assert [part.get("text") for part in parts] == ["Let me see.", "It is done. " * 9, None]


async def test_token_counts_pass_but_are_no_exchange(bench: Any) -> None:
    messages, gemini = await bench.key("messages"), await bench.key("gemini")
    sent = bench.words.body("messages", "hello")
    status, raw, _ = await bench.post(messages, "/v1/messages/count_tokens?beta=true", sent)
    assert status == 200 and json.loads(raw)["input_tokens"] > 0
    path = "/v1beta/models/local-model:countTokens"
    status, raw, _ = await bench.post(gemini, path, bench.words.body("gemini", "hello"))
    assert status == 200 and json.loads(raw)["totalTokens"] > 0
    assert not await bench.exchanges(messages) and not await bench.exchanges(gemini)
    assert (await bench.relay.usage(messages.id)).requests == 0


async def test_bodies_that_are_large_compressed_or_pretty(bench: Any) -> None:
    import gzip

    key = await bench.key("chat")
    body = bench.words.body("chat", "ä" * 3_000_000)
    raw = json.dumps(body, indent=2, ensure_ascii=False).encode()
    headers = {"authorization": f"Bearer {key.secret}", "content-encoding": "gzip"}
    status, _, _ = await bench.post(key, bench.words.path("chat"), gzip.compress(raw), headers)
    assert status == 200
    (exchange,) = await bench.exchanges(key)
    assert exchange.request == body == bench.model.log[0].body
