"""The official clients of the providers understand everything the local model says."""

from __future__ import annotations

from typing import Any

import pytest
from benchflow_testing import LocalModel, Step

SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
PROMPT = "[[fake:think]]"


@pytest.fixture(autouse=True)
def scripted(local_model: LocalModel) -> None:
    usage = {"input": 100, "output": 20, "cached": 40, "reasoning": 5}
    calls = [{"do": "bash", "command": "echo hi"}]
    local_model.script("think", [Step("It is done.", think="Let me see.", tools=calls, usage=usage)])


def openai_client(model: LocalModel) -> Any:
    openai = pytest.importorskip("openai")
    return openai.AsyncOpenAI(base_url=f"{model.base_url}/v1", api_key="k", max_retries=0)


async def test_openai_chat(local_model: LocalModel) -> None:
    tools = [{"type": "function", "function": {"name": "bash", "parameters": SHELL}}]
    sent: dict[str, Any] = {
        "model": "m",
        "messages": [{"role": "user", "content": PROMPT}],
        "tools": tools,
    }
    async with openai_client(local_model) as client:
        whole = await client.chat.completions.create(**sent)
        assert whole.choices[0].message.content == "It is done."
        assert whole.choices[0].message.tool_calls[0].function.arguments == '{"command": "echo hi"}'
        assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (100, 25)
        text, arguments, usage = "", "", None
        stream = await client.chat.completions.create(**sent, stream=True, stream_options={"include_usage": True})
        async for chunk in stream:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                arguments += "".join(c.function.arguments for c in choice.delta.tool_calls or ())
        assert (text, arguments) == ("It is done.", '{"command": "echo hi"}')
        assert usage.prompt_tokens_details.cached_tokens == 40


async def test_openai_responses(local_model: LocalModel) -> None:
    sent = {"model": "m", "input": PROMPT, "tools": [{"type": "function", "name": "bash", "parameters": SHELL}]}
    async with openai_client(local_model) as client:
        whole = await client.responses.create(**sent)
        assert whole.output_text == "It is done."
        assert [item.type for item in whole.output] == ["reasoning", "message", "function_call"]
        async with client.responses.stream(**sent) as stream:
            async for _ in stream:
                pass
            final = await stream.get_final_response()
        assert final.output_text == "It is done." and final.usage.output_tokens == 25


async def test_openai_freeform_tool(local_model: LocalModel) -> None:
    tools = [{"type": "custom", "name": "apply_patch", "description": "patches files"}]
    async with openai_client(local_model) as client:
        stream = await client.responses.create(
            model="m", input="[[fake:write-hello path=/x]]", tools=tools, stream=True
        )
        inputs = [event.input async for event in stream if event.type == "response.custom_tool_call_input.done"]
    assert len(inputs) == 1 and inputs[0].startswith("*** Begin Patch")


async def test_anthropic_messages(local_model: LocalModel) -> None:
    anthropic = pytest.importorskip("anthropic")
    sent: dict[str, Any] = {
        "model": "m",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": PROMPT}],
        "tools": [{"name": "bash", "input_schema": SHELL}],
    }
    async with anthropic.AsyncAnthropic(base_url=local_model.base_url, api_key="k", max_retries=0) as client:
        for message in (await client.messages.create(**sent), await _final(client, sent)):
            assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
            assert message.content[2].input == {"command": "echo hi"}
            assert message.stop_reason == "tool_use"
            assert (message.usage.input_tokens, message.usage.cache_read_input_tokens) == (60, 40)
            assert message.usage.output_tokens == 25
        counted = await client.messages.count_tokens(model="m", messages=sent["messages"])
        assert counted.input_tokens > 0


async def _final(client: Any, sent: dict[str, Any]) -> Any:
    async with client.messages.stream(**sent) as stream:
        return await stream.get_final_message()


async def test_google_genai(local_model: LocalModel) -> None:
    genai = pytest.importorskip("google.genai")
    from google.genai import types

    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=local_model.base_url))
    declared = types.FunctionDeclaration(name="bash", parameters_json_schema=SHELL)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    whole = await client.aio.models.generate_content(model="m", contents=PROMPT, config=config)
    parts = whole.candidates[0].content.parts
    assert [part.text for part in parts[:2]] == ["Let me see.", "It is done."]
    assert parts[2].function_call.args == {"command": "echo hi"}
    assert whole.usage_metadata.thoughts_token_count == 5
    text, calls, last = "", [], None
    async for chunk in await client.aio.models.generate_content_stream(model="m", contents=PROMPT, config=config):
        last = chunk
        for part in chunk.candidates[0].content.parts:
            text += part.text or "" if not part.thought else ""
            calls += [part.function_call.args] if part.function_call else []
    assert (text, calls) == ("It is done.", [{"command": "echo hi"}])
    assert last is not None and last.usage_metadata.prompt_token_count == 100


async def test_errors_become_the_clients_own(local_model: LocalModel) -> None:
    openai = pytest.importorskip("openai")
    anthropic = pytest.importorskip("anthropic")
    genai = pytest.importorskip("google.genai")
    local_model.fault(status=401, error="no", times=3, aux=True)
    said: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    async with openai_client(local_model) as client:
        with pytest.raises(openai.AuthenticationError):
            await client.chat.completions.create(**said)
    async with anthropic.AsyncAnthropic(base_url=local_model.base_url, api_key="k", max_retries=0) as other:
        with pytest.raises(anthropic.AuthenticationError):
            await other.messages.create(**said, max_tokens=5)
    from google.genai import errors, types

    google = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=local_model.base_url))
    with pytest.raises(errors.ClientError) as caught:
        await google.aio.models.generate_content(model="m", contents="x")
    assert caught.value.code == 401
