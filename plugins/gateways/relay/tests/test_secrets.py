"""A provider that repeats the key it was sent: the box does not see it, however the answer is cut."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import aiohttp
import pytest
from aiohttp import web


def chat_event(text: str) -> bytes:
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': text}}]})}\n\n".encode()


END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


class Streaming:
    """A provider that writes the given pieces, each in a packet of its own."""

    def __init__(self, *pieces: bytes, pause: float = 0.02, cut: bool = False) -> None:
        self._pieces, self._pause, self._cut = pieces, pause, cut

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for piece in self._pieces:
            await response.write(piece)
            await asyncio.sleep(self._pause)
        if self._cut and request.transport is not None:
            request.transport.abort()
        return response


async def test_a_key_that_comes_in_two_chunks_does_not_reach_the_box(bench: Any) -> None:
    secret = bench.words.provider_key.encode()
    told = chat_event(f"you sent {bench.words.provider_key}.")
    at = told.index(secret)
    for cut in (at + 1, at + 5, at + len(secret) - 1):
        async with bench.serving(Streaming(told[:cut], told[cut:], END)) as base:
            key = await bench.key("chat", target={"base_url": base})
            _, raw, _ = await bench.ask(key, "chat", "hello", stream=True)
        assert raw == told.replace(secret, b"[redacted]") + END
        (exchange,) = await bench.exchanges(key)
        assert exchange.error is None
        assert exchange.response["choices"][0]["message"]["content"] == "you sent [redacted]."


async def test_a_key_that_comes_byte_by_byte_does_not_reach_the_box(bench: Any) -> None:
    told = chat_event(f"s sk-pro {bench.words.provider_key} sk-provider")
    pieces = [bytes([byte]) for byte in told]
    async with bench.serving(Streaming(*pieces, END, pause=0.002)) as base:
        key = await bench.key("chat", target={"base_url": base})
        _, raw, _ = await bench.ask(key, "chat", "hello", stream=True)
    assert raw == chat_event("s sk-pro [redacted] sk-provider") + END


async def test_what_only_begins_like_the_key_is_passed_on_in_the_end(bench: Any) -> None:
    begun = b"data: " + bench.words.provider_key[:-1].encode()
    for cut in (False, True):
        async with bench.serving(Streaming(begun, cut=cut)) as base:
            key = await bench.key("messages", target={"base_url": base})
            url = bench.url(key, bench.words.path("messages"))
            body = bench.words.body("messages", "hello", stream=True)
            got = b""
            try:
                async with bench.http.post(url, json=body, headers={"x-api-key": key.secret}) as response:
                    async for chunk in response.content.iter_any():
                        got += chunk
            except aiohttp.ClientPayloadError:
                assert cut
        assert got == begun


async def test_a_stream_without_the_key_is_not_held_back(bench: Any) -> None:
    first, rest = b'data: {"type":"message_start","message":{"content":[]}}\n\nda', b"ta: {}\n\n"
    async with bench.serving(Streaming(first, rest, pause=1.0)) as base:
        key = await bench.key("messages", target={"base_url": base})
        url = bench.url(key, bench.words.path("messages"))
        body = bench.words.body("messages", "hello", stream=True)
        clock = asyncio.get_running_loop().time
        async with bench.http.post(url, json=body, headers={"x-api-key": key.secret}) as response:
            began, got = clock(), b""
            while len(got) < len(first):
                got += await response.content.readany()
            assert clock() - began < 0.8 and got == first


@pytest.mark.parametrize("escape", [lambda key: json.dumps(key)[1:-1], lambda key: key.replace("/", r"\/")])
async def test_a_key_inside_json_is_found(bench: Any, open_relay: Any, escape: Any) -> None:
    secret = 'sk-"pro\\vider"/0123456789'
    bench.relay, before = open_relay(LOCAL_API_KEY=secret), bench.relay
    told = b'data: {"error":{"message":"bad key ' + escape(secret).encode() + b'"}}\n\n'
    try:
        async with bench.serving(Streaming(told[:40], told[40:])) as base:
            key = await bench.key("chat", target={"base_url": base})
            _, raw, _ = await bench.ask(key, "chat", "hello", stream=True)
    finally:
        await bench.relay.close()
        bench.relay = before
    assert raw == b'data: {"error":{"message":"bad key [redacted]"}}\n\n'


@pytest.mark.parametrize("stream", [False, True])
async def test_a_key_in_a_compressed_answer_does_not_reach_the_box(bench: Any, stream: bool) -> None:
    """The relay asks for answers that are not compressed; some servers compress nevertheless."""
    whole = {"choices": [{"message": {"content": f"you sent {bench.words.provider_key}"}, "finish_reason": "stop"}]}
    said = chat_event(f"you sent {bench.words.provider_key}") + END if stream else json.dumps(whole).encode()

    async def compressing(request: web.BaseRequest) -> web.StreamResponse:
        kind = "text/event-stream" if stream else "application/json"
        return web.Response(body=gzip.compress(said), headers={"content-type": kind, "content-encoding": "gzip"})

    async with bench.serving(compressing) as base:
        key = await bench.key("chat", target={"base_url": base})
        _, raw, _ = await bench.ask(key, "chat", "hello", stream=stream)
    assert raw == said.replace(bench.words.provider_key.encode(), b"[redacted]")
    (exchange,) = await bench.exchanges(key)
    assert exchange.response["choices"][0]["message"]["content"] == "you sent [redacted]"


async def test_an_answer_that_is_not_what_its_encoding_says_is_an_error(bench: Any) -> None:
    async def broken(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=b"plain", headers={"content-type": "application/json", "content-encoding": "gzip"})

    async with bench.serving(broken) as base:
        key = await bench.key("chat", target={"base_url": base})
        for stream in (False, True):
            try:
                status, _, _ = await bench.ask(key, "chat", "hello", stream=stream)
            except aiohttp.ClientPayloadError:
                status = 502
            assert status == 502
    assert [exchange.error_type for exchange in await bench.exchanges(key)] == ["stream_cut", "stream_cut"]


async def test_a_key_in_a_header_does_not_reach_the_box(bench: Any) -> None:
    async def echo(request: web.BaseRequest) -> web.StreamResponse:
        given = request.headers["authorization"]
        return web.json_response({"error": {"message": "no"}}, status=401, headers={"x-request-id": given})

    async with bench.serving(echo) as base:
        key = await bench.key("chat", target={"base_url": base})
        _, _, headers = await bench.ask(key, "chat", "hello")
    assert headers["x-request-id"] == "Bearer [redacted]"
