"""A provider that fails, in every way we know: the client sees it, and it is written down by kind."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from benchflow_testing import Step
from benchflow_testing_kit.host import eventually

WIRES = ("chat", "responses", "messages", "gemini")

STATUSES: list[tuple[dict[str, Any], str]] = [
    ({"status": 400}, "invalid_request"),
    ({"status": 401}, "credential_refused"),
    ({"status": 403}, "permission_denied"),
    ({"status": 404}, "unknown_model"),
    ({"status": 400, "code": "model_not_found"}, "unknown_model"),
    ({"status": 402}, "no_credit"),
    ({"status": 429, "retry_after": 7}, "provider_rate_limited"),
    ({"status": 500}, "provider_error"),
    ({"status": 529}, "provider_error"),
    ({"html": True}, "not_a_model_api"),
    ({"html": True, "status": 404}, "not_a_model_api"),
    ({"html": True, "status": 502}, "provider_error"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("fault", "kind"), STATUSES)
@pytest.mark.parametrize("wire", WIRES)
async def test_an_error_passes_as_it_is_and_is_typed(
    bench: Any, wire: Any, fault: dict[str, Any], kind: str, stream: bool
) -> None:
    if wire == "gemini" and "code" in fault:
        fault, kind = {**fault, "code": "API_KEY_INVALID"}, "credential_refused"
    bench.model.fault(**fault, times=2)
    key = await bench.key(wire)
    status, raw, headers = await bench.ask(key, wire, "hello", stream=stream)
    assert status == fault.get("status", 200)
    (exchange,) = await bench.exchanges(key)
    assert (exchange.status, exchange.error_type) == (status, kind)
    if fault.get("html"):
        assert headers["content-type"].startswith("text/html") and b"It works!" in raw
        assert exchange.response is None
    else:
        assert json.loads(raw) == exchange.response and "scripted error" in exchange.error
        assert headers.get("retry-after") == ("7" if status == 429 else None)
    assert exchange.usage.input_tokens is None
    assert (await bench.relay.usage(key.id)).complete, "an error used no tokens"


async def test_no_credit_is_told_from_too_many_requests(bench: Any) -> None:
    bench.model.fault(status=429, code="insufficient_quota")
    key = await bench.key("chat")
    await bench.ask(key, "chat", "hello")
    (exchange,) = await bench.exchanges(key)
    assert exchange.error_type == "no_credit"


@pytest.mark.parametrize("cut", [0, 1, 3])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_stream_that_breaks_off_does_so_for_the_client_too(bench: Any, wire: Any, cut: int) -> None:
    bench.model.script("broken", [Step("This is never said to its end. " * 10, cut=cut)])
    key = await bench.key(wire)
    with pytest.raises(aiohttp.ClientPayloadError):
        await bench.ask(key, wire, "[[fake:broken]]", stream=True)
    (exchange,) = await bench.exchanges(key)
    assert (exchange.status, exchange.error_type) == (200, "stream_cut")
    assert exchange.usage.output_tokens is None and not exchange.usage.complete


async def test_a_stream_that_ends_without_its_end_is_cut_as_well(bench: Any) -> None:
    """Some proxies close a broken stream politely."""

    async def polite(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(
            body=b'data: {"choices":[{"delta":{"content":"half"}}]}\n\n', content_type="text/event-stream"
        )

    async with bench.serving(polite) as base:
        key = await bench.key("chat", target={"base_url": base})
        status, raw, _ = await bench.ask(key, "chat", "hello", stream=True)
        assert status == 200 and b"half" in raw
        (exchange,) = await bench.exchanges(key)
        assert exchange.error_type == "stream_cut"
        assert exchange.response["choices"][0]["message"]["content"] == "half"


@pytest.mark.parametrize("wire", WIRES)
async def test_an_answer_that_breaks_off_is_an_error_of_the_gateway(bench: Any, wire: Any) -> None:
    bench.model.script("broken", [Step("half", cut=1)])
    key = await bench.key(wire)
    status, raw, _ = await bench.ask(key, wire, "[[fake:broken]]")
    assert status == 502 and "broke off" in json.loads(raw)["error"]["message"]
    (exchange,) = await bench.exchanges(key)
    assert exchange.error_type == "stream_cut"


ERROR_EVENTS = {
    "chat": b'data: {"error":{"message":"overloaded","code":502}}\n\n',
    "responses": b'event: error\ndata: {"type":"error","code":"server_error","message":"overloaded"}\n\n',
    "messages": b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"overloaded"}}\n\n',
    "gemini": b'data: {"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}\r\n\r\n',
}


@pytest.mark.parametrize("wire", WIRES)
async def test_an_error_inside_a_stream_counts(bench: Any, wire: Any) -> None:
    async def failing(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=ERROR_EVENTS[wire], content_type="text/event-stream")

    async with bench.serving(failing) as base:
        key = await bench.key(wire, target={"base_url": base})
        status, raw, _ = await bench.ask(key, wire, "hello", stream=True)
        assert status == 200 and raw == ERROR_EVENTS[wire]
        (exchange,) = await bench.exchanges(key)
        assert (exchange.error_type, exchange.error) == ("provider_error", "overloaded")


@pytest.mark.parametrize("wire", WIRES)
async def test_nobody_there_is_said_in_the_wires_shape(bench: Any, wire: Any) -> None:
    async with bench.serving(lambda request: None) as base:
        pass
    key = await bench.key(wire, target={"base_url": base})
    status, raw, _ = await bench.ask(key, wire, "hello")
    assert status == 502 and "cannot be reached" in json.loads(raw)["error"]["message"]
    (exchange,) = await bench.exchanges(key)
    assert (exchange.status, exchange.error_type) == (502, "unreachable")
    assert (await bench.relay.usage(key.id)).complete


async def test_a_redirect_is_not_followed_with_the_key(bench: Any) -> None:
    followed = []

    async def elsewhere(request: web.BaseRequest) -> web.StreamResponse:
        followed.append(request.path)
        return web.Response(status=307, headers={"location": f"{bench.model.base_url}/v1/chat/completions"})

    async with bench.serving(elsewhere) as base:
        key = await bench.key("chat", target={"base_url": base})
        status, raw, _ = await bench.ask(key, "chat", "hello")
    assert status == 502 and b"redirect" in raw
    assert followed == ["/chat/completions"] and not bench.model.log
    (exchange,) = await bench.exchanges(key)
    assert exchange.error_type == "not_a_model_api"


async def test_a_provider_that_echoes_the_key_does_not_tell_it(bench: Any) -> None:
    async def echo(request: web.BaseRequest) -> web.StreamResponse:
        said = json.dumps({"error": {"message": f"bad key {request.headers['authorization']}"}})
        return web.Response(status=401, text=said, content_type="application/json", headers={"x-key": "k"})

    async with bench.serving(echo) as base:
        key = await bench.key("chat", target={"base_url": base})
        status, raw, headers = await bench.ask(key, "chat", "hello")
    assert status == 401 and b"bad key Bearer [redacted]" in raw and "x-key" not in headers
    assert bench.words.provider_key not in repr(await bench.exchanges(key))


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_frees_the_provider(bench: Any, stream: bool) -> None:
    if not stream:
        bench.model.fault(delay=30)
    key = await bench.key("chat")
    body = bench.words.body("chat", "[[fake:slow]]", stream=stream)
    headers = {"authorization": f"Bearer {key.secret}"}

    async def leave() -> None:
        async with bench.http.post(bench.url(key, bench.words.path("chat")), json=body, headers=headers) as response:
            await response.content.readany()

    if stream:
        await leave()
    else:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(leave(), 0.5)
    assert await eventually(lambda: bench.model.log[0].client_gone)
    (exchange,) = await bench.exchanges(key)
    assert (exchange.error_type, exchange.status) == ("client_gone", 200 if stream else 499)
    assert not exchange.usage.complete


async def test_a_client_that_leaves_after_the_last_word_had_its_answer(bench: Any) -> None:
    async def lingering(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        last = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}
        start = {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 7}}}
        for event in (start, last, {"type": "message_stop"}):
            await response.write(f"data: {json.dumps(event)}\n\n".encode())
        await asyncio.sleep(30)
        return response

    async with bench.serving(lingering) as base:
        key = await bench.key("messages", target={"base_url": base})
        url = bench.url(key, bench.words.path("messages"))
        body = bench.words.body("messages", "hello", stream=True)
        async with bench.http.post(url, json=body, headers={"x-api-key": key.secret}) as response:
            got = b""
            while b"message_stop" not in got:
                got += await response.content.readany()
        (exchange,) = await bench.exchanges(key)
        assert exchange.error is None
        assert (exchange.usage.input_tokens, exchange.usage.output_tokens) == (7, 3)


async def test_the_first_byte_does_not_wait_for_the_last(bench: Any) -> None:
    bench.model.script("late", [Step("a b c", first_byte=0.4, chunk_delay=0.4)])
    key = await bench.key("messages")
    clock = asyncio.get_running_loop().time
    began = clock()
    url = bench.url(key, bench.words.path("messages"))
    body = bench.words.body("messages", "[[fake:late]]", stream=True)
    async with bench.http.post(url, json=body, headers={"x-api-key": key.secret}) as response:
        headers = clock() - began
        await response.content.readany()
        first = clock() - began
        await response.content.read()
        last = clock() - began
    assert headers < 0.35 and 0.4 <= first < 0.75 and last > 1.5


async def test_the_users_proxy_is_taken_but_not_for_this_host(bench: Any, open_relay: Any) -> None:
    asked = []

    async def proxy(request: web.BaseRequest) -> web.StreamResponse:
        asked.append((request.headers["host"], request.path))
        return web.json_response({"choices": [{"message": {"content": "by proxy"}, "finish_reason": "stop"}]})

    async with bench.serving(proxy) as address:
        relay = open_relay(HTTP_PROXY=address, NO_PROXY="inside.example")
        bench.relay, before = relay, bench.relay
        try:
            outside = await bench.key("chat", target={"base_url": "http://model.example/v1"})
            inside = await bench.key("chat", target={"base_url": "http://inside.example.invalid/v1"})
            here = await bench.key("chat")
            assert b"by proxy" in (await bench.ask(outside, "chat", "hello"))[1]
            assert (await bench.ask(here, "chat", "hello"))[0] == 200 and len(bench.model.log) == 1
            assert (await bench.ask(inside, "chat", "hello"))[0] == 200, "only whole host names are exempt"
        finally:
            await relay.close()
            bench.relay = before
    assert asked == [("model.example", "/v1/chat/completions"), ("inside.example.invalid", "/v1/chat/completions")]
