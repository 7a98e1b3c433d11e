"""The official clients work through the relay as they do without it."""

from __future__ import annotations

from typing import Any

import pytest
from benchflow_testing import Step

SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


@pytest.fixture(autouse=True)
def scripted(bench: Any) -> None:
    calls = [{"do": "bash", "command": "echo hi"}]
    usage = {"input": 30, "output": 12}
    bench.model.script("act", [Step("I act.", think="Hm.", tools=calls, usage=usage)])


async def recorded(bench: Any, key: Any) -> list[tuple[Any, ...]]:
    found = await bench.exchanges(key)
    return [(e.streamed, e.status, e.error, e.usage.input_tokens, e.usage.output_tokens) for e in found]


async def test_openai(bench: Any) -> None:
    openai = pytest.importorskip("openai")
    chat, responses = await bench.key("chat"), await bench.key("responses")
    tools = [{"type": "function", "function": {"name": "bash", "parameters": SHELL}}]
    said: dict[str, Any] = {"model": "local-model", "messages": [{"role": "user", "content": "[[fake:act]]"}]}
    async with openai.AsyncOpenAI(base_url=bench.url(chat, "/v1"), api_key=chat.secret) as client:
        whole = await client.chat.completions.create(**said, tools=tools)
        assert whole.choices[0].message.tool_calls[0].function.name == "bash"
        text = ""
        async for chunk in await client.chat.completions.create(**said, tools=tools, stream=True):
            assert chunk.choices, "what the client did not ask for does not arrive"
            text += chunk.choices[0].delta.content or ""
        assert text == "I act."
        assert [model.id async for model in client.models.list()] == ["local-model"]
        with pytest.raises(openai.NotFoundError, match="not declared"):
            await client.chat.completions.create(**{**said, "model": "other"})
    assert await recorded(bench, chat) == [
        (False, 200, None, 30, 12),
        (True, 200, None, 30, 12),
        (False, 404, "model 'other' is not declared for this rollout. Declared: local-model", None, None),
    ]
    flat = [{"type": "function", "name": "bash", "parameters": SHELL}]
    async with openai.AsyncOpenAI(base_url=bench.url(responses, "/v1"), api_key=responses.secret) as client:
        async with client.responses.stream(model="local-model", input="[[fake:act]]", tools=flat) as stream:
            final = await stream.get_final_response()
        assert final.output_text == "I act."
        await bench.relay.revoke(responses.id)
        with pytest.raises(openai.AuthenticationError):
            await client.responses.create(model="local-model", input="hello")
    assert await recorded(bench, responses) == [(True, 200, None, 30, 12)]


async def test_anthropic(bench: Any) -> None:
    anthropic = pytest.importorskip("anthropic")
    key = await bench.key("messages")
    said: dict[str, Any] = {
        "model": "local-model",
        "max_tokens": 99,
        "messages": [{"role": "user", "content": "[[fake:act]]"}],
        "tools": [{"name": "bash", "input_schema": SHELL}],
    }
    async with anthropic.AsyncAnthropic(base_url=bench.url(key, ""), api_key=key.secret, max_retries=0) as client:
        async with client.messages.stream(**said) as stream:
            message = await stream.get_final_message()
        assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
        assert (await client.messages.create(**said)).content[2].input == {"command": "echo hi"}
        bench.model.fault(status=529, error="busy")
        with pytest.raises(anthropic.InternalServerError, match="busy"):
            await client.messages.create(**said)
    got = await recorded(bench, key)
    assert got[:2] == [(True, 200, None, 30, 12), (False, 200, None, 30, 12)]
    assert got[2][:3] == (False, 529, "HTTP 529: busy")


async def test_google_genai(bench: Any) -> None:
    genai = pytest.importorskip("google.genai")
    from google.genai import errors, types

    key = await bench.key("gemini")
    client = genai.Client(api_key=key.secret, http_options=types.HttpOptions(base_url=bench.url(key, "")))
    text = ""
    async for chunk in await client.aio.models.generate_content_stream(
        model="local-model", contents="[[fake:say text=hello]]"
    ):
        text += chunk.text or ""
    assert text == "hello"
    assert (await client.aio.models.generate_content(model="local-model", contents="x")).text == "ok"
    with pytest.raises(errors.ClientError) as caught:
        await client.aio.models.generate_content(model="other", contents="x")
    assert caught.value.code == 404
    assert [entry[:2] for entry in await recorded(bench, key)] == [(True, 200), (False, 200), (False, 404)]
