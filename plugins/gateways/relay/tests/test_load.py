"""Many requests at once, and many after each other."""

from __future__ import annotations

import asyncio
import gc
import json
from pathlib import Path
from typing import Any

import pytest
from benchflow_testing_kit.host import eventually, open_descriptors


async def test_two_hundred_streams_at_once_do_not_mix(bench: Any) -> None:
    keys = [await bench.key("messages") for _ in range(20)]
    bench.model.script("echo", [{"text": "{text} " * 30, "chunk_delay": 0.01}])

    async def one(number: int) -> None:
        key = keys[number % 20]
        status, raw, _ = await bench.ask(key, "messages", f"[[fake:echo text=n{number}n]]", stream=True)
        assert status == 200
        events = [json.loads(line[6:]) for line in raw.decode().splitlines() if line.startswith("data: {")]
        text = "".join(e["delta"].get("text", "") for e in events if e["type"] == "content_block_delta")
        assert text == f"n{number}n " * 30

    await asyncio.gather(*(one(number) for number in range(200)))
    for place, key in enumerate(keys):
        found = await bench.exchanges(key)
        asked = {e.request["messages"][0]["content"] for e in found}
        assert asked == {f"[[fake:echo text=n{n}n]]" for n in range(place, 200, 20)}
        for exchange in found:
            number = exchange.request["messages"][0]["content"][17:-2]
            assert exchange.response["content"][0]["text"] == f"{number} " * 30


def resident_kilobytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    pytest.skip("memory is not visible here")


@pytest.mark.slow
async def test_memory_and_descriptors_stay_flat_over_five_thousand_requests(bench: Any) -> None:
    bench.model.log = type(bench.model.log)(maxlen=1)
    key = await bench.key("chat")
    prompt = "word " * 2000

    async def some(count: int) -> None:
        for _ in range(count // 10):
            replies = await asyncio.gather(*(bench.ask(key, "chat", prompt) for _ in range(10)))
            assert all(status == 200 for status, _, _ in replies)

    await some(500)
    gc.collect()
    memory, descriptors = resident_kilobytes(), open_descriptors()
    await some(5000)
    gc.collect()
    assert resident_kilobytes() - memory < 20_000, "50 MB of requests went through"
    assert open_descriptors() <= descriptors + 2
    assert (await bench.relay.usage(key.id)).requests == 5500
    count = 0
    async for exchange in bench.relay.exchanges(key.id):
        count += 1
        assert exchange.request["messages"][0]["content"] == prompt
    assert count == 5500
    assert resident_kilobytes() - memory < 30_000


async def test_an_idle_key_weighs_little(bench: Any) -> None:
    await bench.key("chat")
    gc.collect()
    before, descriptors = resident_kilobytes(), open_descriptors()
    keys = [await bench.key("chat") for _ in range(500)]
    assert (resident_kilobytes() - before) / 500 < 50
    assert open_descriptors() == descriptors
    for key in keys:
        await bench.relay.revoke(key.id)


async def test_closing_leaves_nothing(bench: Any) -> None:
    descriptors = open_descriptors()
    key = await bench.key("chat")
    streams = [asyncio.create_task(bench.ask(key, "chat", "[[fake:slow]]", stream=True)) for _ in range(5)]
    assert await eventually(lambda: len(bench.model.log) == 5)
    await bench.relay.close()
    results = await asyncio.gather(*streams, return_exceptions=True)
    assert all(isinstance(result, Exception) for result in results)
    await bench.http.close()
    assert await eventually(lambda: open_descriptors() <= descriptors)
    assert await eventually(lambda: all(seen.client_gone for seen in bench.model.log))
