"""The official clients, each at a provider that speaks another wire."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = [
    pytest.mark.litellm,
    pytest.mark.xdist_group("litellm"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(600),
]


@pytest.fixture(autouse=True)
def scripted(bench: Any) -> None:
    step = {"text": "I look.", "tools": [{"do": "bash", "command": "ls /app"}], "usage": {"input": 321, "output": 45}}
    bench.model.script("look", [step, "There is one file."])


@pytest.mark.parametrize("provider", ["messages", "gemini"])
async def test_openai_chat(bench: Any, provider: Any) -> None:
    openai = pytest.importorskip("openai")
    key = await bench.key("chat", provider)
    client = openai.AsyncOpenAI(base_url=bench.url(key, "/v1"), api_key=key.secret, max_retries=0)
    shell = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
    tools = [{"type": "function", "function": {"name": "bash", "parameters": shell}}]
    messages: list[Any] = [{"role": "user", "content": "[[fake:look]]"}]
    first = await client.chat.completions.create(model="org/local-model", messages=messages, tools=tools)
    [call] = first.choices[0].message.tool_calls
    assert call.function.name == "bash" and "ls /app" in call.function.arguments
    messages += [first.choices[0].message.model_dump(exclude_none=True)]
    messages += [{"role": "tool", "tool_call_id": call.id, "content": "hello.txt"}]
    stream = await client.chat.completions.create(model="org/local-model", messages=messages, tools=tools, stream=True)
    said = "".join([(chunk.choices[0].delta.content or "") async for chunk in stream if chunk.choices])
    assert said == "There is one file."


@pytest.mark.parametrize("provider", ["chat", "responses"])
async def test_anthropic_messages(bench: Any, provider: Any) -> None:
    anthropic = pytest.importorskip("anthropic")
    key = await bench.key("messages", provider)
    client = anthropic.AsyncAnthropic(base_url=bench.url(key), api_key=key.secret, max_retries=0)
    shell = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
    more: dict[str, Any] = {
        "model": "org/local-model",
        "max_tokens": 200,
        "tools": [{"name": "bash", "input_schema": shell}],
    }
    messages: list[Any] = [{"role": "user", "content": "[[fake:look]]"}]
    async with client.messages.stream(messages=messages, **more) as stream:
        first = await stream.get_final_message()
    [call] = [block for block in first.content if block.type == "tool_use"]
    assert call.name == "bash" and call.input == {"command": "ls /app"} and first.stop_reason == "tool_use"
    messages += [{"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]}]
    messages += [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "hello.txt"}]}]
    second = await client.messages.create(messages=messages, **more)
    assert "".join(b.text for b in second.content if b.type == "text") == "There is one file."


@pytest.mark.parametrize("provider", ["chat", "messages"])
async def test_google_genai(bench: Any, provider: Any) -> None:
    genai = pytest.importorskip("google.genai")
    key = await bench.key("gemini", provider)
    client = genai.Client(api_key=key.secret, http_options={"base_url": bench.url(key)})
    shell = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
    tools = [{"function_declarations": [{"name": "bash", "description": "runs", "parameters_json_schema": shell}]}]
    stream = await client.aio.models.generate_content_stream(
        model="org/local-model", contents="[[fake:look]]", config={"tools": tools}
    )
    calls = [call async for part in stream for call in part.function_calls or ()]
    assert [(call.name, call.args) for call in calls] == [("bash", {"command": "ls /app"})]
    usage = (await bench.last(key)).usage
    assert (usage.input_tokens, usage.output_tokens) == (321, 45), "LiteLLM says 0 here"


async def test_openai_responses_at_a_chat_provider(bench: Any) -> None:
    openai = pytest.importorskip("openai")
    key = await bench.key("responses", "chat")
    client = openai.AsyncOpenAI(base_url=bench.url(key, "/v1"), api_key=key.secret, max_retries=0)
    shell = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
    tools = [{"type": "function", "name": "bash", "parameters": shell}]
    async with client.responses.stream(model="org/local-model", input="[[fake:look]]", tools=tools) as stream:
        final = await stream.get_final_response()
    [call] = [item for item in final.output if item.type == "function_call"]
    assert call.name == "bash" and "ls /app" in call.arguments


async def test_errors_are_those_of_the_client(bench: Any) -> None:
    anthropic = pytest.importorskip("anthropic")
    bench.model.script("slow", [{"status": 429, "error": "slow down", "retry_after": 3}])
    key = await bench.key("messages", "chat")
    client = anthropic.AsyncAnthropic(base_url=bench.url(key), api_key=key.secret, max_retries=0)
    with pytest.raises(anthropic.RateLimitError) as caught:
        message = {"role": "user", "content": "[[fake:slow]]"}
        await client.messages.create(model="org/local-model", max_tokens=9, messages=[message])
    assert "slow down" in str(caught.value)
