"""What can go wrong on the way, on purpose."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
import urllib.request
from typing import Any

import aiohttp
import pytest
from benchflow_testing import LocalModel, Step

PATH = "/v1/chat/completions"


def chat(prompt: str, **more: Any) -> dict[str, Any]:
    return {"model": "local-model", "messages": [{"role": "user", "content": prompt}], **more}


async def test_a_rate_limit_says_when_to_come_back(local_model: LocalModel) -> None:
    async with aiohttp.ClientSession(local_model.base_url) as http:
        async with http.post(PATH, json=chat("[[fake:rate-limit]]")) as response:
            assert (response.status, response.headers["retry-after"]) == (429, "1")


async def test_a_fault_happens_as_often_as_asked_and_spares_auxiliary_calls(local_model: LocalModel) -> None:
    local_model.fault(status=529, times=2)
    aux = chat("[[fake:bash cmd=ls]]")
    statuses = []
    async with aiohttp.ClientSession(local_model.base_url) as http:
        for sent in (chat("a"), aux, chat("b"), chat("c")):
            async with http.post(PATH, json=sent) as response:
                statuses.append(response.status)
    assert statuses == [529, 200, 529, 200]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_cut_answer_has_a_beginning_and_no_end(local_model: LocalModel, stream: bool) -> None:
    async with aiohttp.ClientSession(local_model.base_url) as http:
        async with http.post(PATH, json=chat("[[fake:cut]]", stream=stream)) as response:
            assert response.status == 200
            got = b""
            with pytest.raises(aiohttp.ClientPayloadError):
                async for chunk in response.content.iter_any():
                    got += chunk
    assert got and b"[DONE]" not in got


async def test_a_page_comes_instead_of_json(local_model: LocalModel) -> None:
    async with aiohttp.ClientSession(local_model.base_url) as http:
        async with http.post(PATH, json=chat("[[fake:html]]")) as response:
            assert response.status == 200 and response.content_type == "text/html"


async def test_a_slow_first_byte_comes_after_the_headers(local_model: LocalModel) -> None:
    local_model.script("late", [Step("at last", first_byte=0.5)])
    async with aiohttp.ClientSession(local_model.base_url) as http:
        began = time.monotonic()
        async with http.post(PATH, json=chat("[[fake:late]]", stream=True)) as response:
            headers = time.monotonic() - began
            await response.content.readany()
            first = time.monotonic() - began
    assert headers < 0.4 and first >= 0.5


async def test_a_client_that_leaves_is_noticed(local_model: LocalModel) -> None:
    async with aiohttp.ClientSession(local_model.base_url) as http:
        async with http.post(PATH, json=chat("[[fake:slow]]", stream=True)) as response:
            await response.content.readany()
    for _ in range(100):
        if local_model.log[-1].client_gone:
            break
        await asyncio.sleep(0.05)
    assert local_model.log[-1].client_gone


async def test_usage_can_be_left_out(local_model: LocalModel) -> None:
    local_model.script("mute", [Step("hm", no_usage=True)])
    async with aiohttp.ClientSession(local_model.base_url) as http:
        async with http.post(PATH, json=chat("[[fake:mute]]")) as response:
            assert "usage" not in await response.json()


def test_it_runs_as_a_program(tmp_path: Any) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"scenarios": {"hi": ["Hello from a file."]}}))
    argv = [sys.executable, "-m", "benchflow_testing", "--script", str(script)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        base = f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}"

        def ask(path: str, value: Any = None) -> Any:
            data = None if value is None else json.dumps(value).encode()
            request = urllib.request.Request(base + path, data, {"authorization": "Bearer secret-value"})
            with urllib.request.urlopen(request, timeout=10) as response:
                return json.load(response)

        assert ask(PATH, chat("[[fake:hi]]"))["choices"][0]["message"]["content"] == "Hello from a file."
        ask("/__script", {"scenarios": {"hi": ["Changed."]}})
        ask("/__fault", {"step": {"status": 500}, "times": 1})
        with pytest.raises(urllib.error.HTTPError):
            ask(PATH, chat("[[fake:hi]]"))
        assert ask(PATH, chat("[[fake:hi]]"))["choices"][0]["message"]["content"] == "Changed."
        log = ask("/__log")
        assert [seen["status"] for seen in log] == [200, 500, 200]
        assert "secret-value" not in json.dumps(log)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0
