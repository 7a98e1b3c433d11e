"""Every wire with plain HTTP: whole and streamed, tools, auxiliary calls."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest
from benchflow_testing import LocalModel, Step

SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "/v1beta/models/local-model:generateContent",
}


def body(wire: str, prompt: str, *, tools: bool = False, **more: Any) -> dict[str, Any]:
    said = [{"role": "user", "content": prompt}]
    made: dict[str, Any] = {"model": "local-model", **more}
    if wire == "chat":
        made["messages"] = said
        if tools:
            made["tools"] = [{"type": "function", "function": {"name": "bash", "parameters": SHELL}}]
    elif wire == "responses":
        made["input"] = said
        if tools:
            made["tools"] = [{"type": "function", "name": "bash", "parameters": SHELL}]
    elif wire == "messages":
        made |= {"messages": said, "max_tokens": 100}
        if tools:
            made["tools"] = [{"name": "bash", "input_schema": SHELL}]
    else:
        made = {"contents": [{"role": "user", "parts": [{"text": prompt}]}], **more}
        if tools:
            made["tools"] = [{"functionDeclarations": [{"name": "bash", "parametersJsonSchema": SHELL}]}]
    return made


def text_and_call(wire: str, answer: dict[str, Any]) -> tuple[str, Any]:
    if wire == "chat":
        message = answer["choices"][0]["message"]
        calls = message.get("tool_calls") or [None]
        return message["content"], calls[0] and json.loads(calls[0]["function"]["arguments"])
    if wire == "responses":
        text = next(i["content"][0]["text"] for i in answer["output"] if i["type"] == "message")
        call = next((i for i in answer["output"] if i["type"] == "function_call"), None)
        return text, call and json.loads(call["arguments"])
    if wire == "messages":
        text = next(b["text"] for b in answer["content"] if b["type"] == "text")
        return text, next((b["input"] for b in answer["content"] if b["type"] == "tool_use"), None)
    parts = answer["candidates"][0]["content"]["parts"]
    call = next((p["functionCall"]["args"] for p in parts if "functionCall" in p), None)
    return next(p["text"] for p in parts if "text" in p), call


async def post(model: LocalModel, path: str, sent: dict[str, Any]) -> tuple[int, Any]:
    async with aiohttp.ClientSession(model.base_url) as http, http.post(path, json=sent) as response:
        return response.status, await response.json()


@pytest.mark.parametrize("wire", PATHS)
async def test_a_tool_is_called_by_the_agents_own_name_for_it(local_model: LocalModel, wire: str) -> None:
    status, answer = await post(local_model, PATHS[wire], body(wire, '[[fake:bash cmd="ls -l"]]', tools=True))
    assert status == 200
    assert text_and_call(wire, answer) == ("Running a command.", {"command": "ls -l"})
    assert local_model.log[-1].calls == ("bash",)


@pytest.mark.parametrize("wire", PATHS)
async def test_a_call_without_tools_is_auxiliary(local_model: LocalModel, wire: str) -> None:
    _, answer = await post(local_model, PATHS[wire], body(wire, "[[fake:bash cmd=ls]] Give this a title."))
    assert text_and_call(wire, answer) == ("A title", None)
    assert local_model.log[-1].scenario == "aux"


@pytest.mark.parametrize("wire", PATHS)
async def test_errors_have_the_wires_shape(local_model: LocalModel, wire: str) -> None:
    status, answer = await post(local_model, PATHS[wire], body(wire, "[[fake:rate-limit]]"))
    assert status == 429 and answer["error"]["message"] == "scripted rate limit"
    marks = {"messages": ("type", "rate_limit_error"), "gemini": ("status", "RESOURCE_EXHAUSTED")}
    name, value = marks.get(wire, ("type", "rate_limit_error"))
    assert answer["error"][name] == value


async def test_the_step_is_the_number_of_answers_since_the_marker(local_model: LocalModel) -> None:
    local_model.script("three", ["one", Step("two"), {"text": "three {name}"}])
    said: list[dict[str, Any]] = []
    for prompt, expected in (("[[fake:three name=a]]", "one"), ("go on", "two"), ("go on", "three a")):
        said.append({"role": "user", "content": prompt})
        _, answer = await post(local_model, PATHS["chat"], {"model": "m", "messages": said})
        assert answer["choices"][0]["message"]["content"] == expected
        said.append(answer["choices"][0]["message"])
    said.append({"role": "user", "content": "now [[fake:say text=again]]"})
    _, answer = await post(local_model, PATHS["chat"], {"model": "m", "messages": said})
    assert answer["choices"][0]["message"]["content"] == "again"


async def test_words_of_a_prompt_choose_what_is_said(local_model: LocalModel) -> None:
    local_model.script("review", ["reviewed {x}"], prompt="You are reviewing")
    local_model.script("fix", ["fixed"], prompt="use Ada's name")
    prompts = {
        "You are reviewing code.": "reviewed {x}",
        "The reviewer says: use Ada's name. Now go on.": "fixed",
        "use Ada's name. [[fake:review x=1]]": "reviewed 1",
        "[[fake:review x=1]] but use Ada's name": "fixed",
        "nothing of that": "ok",
    }
    for prompt, expected in prompts.items():
        _, answer = await post(local_model, PATHS["chat"], body("chat", prompt))
        assert answer["choices"][0]["message"]["content"] == expected, prompt


async def test_structured_output_gets_a_valid_instance(local_model: LocalModel) -> None:
    schema = {
        "type": "object",
        "properties": {"kind": {"enum": ["a", "b"]}, "n": {"$ref": "#/$defs/n"}, "left_out": {"type": "string"}},
        "required": ["kind", "n"],
        "$defs": {"n": {"type": "integer"}},
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    _, answer = await post(local_model, PATHS["chat"], body("chat", "classify", response_format=wanted))
    assert json.loads(answer["choices"][0]["message"]["content"]) == {"kind": "a", "n": 1}


async def test_write_uses_a_patch_tool_or_falls_back_to_the_shell(local_model: LocalModel) -> None:
    patch = {"type": "custom", "name": "apply_patch", "description": "patches"}
    sent = body("responses", "[[fake:write-hello path=/x/y.txt]]") | {"tools": [patch]}
    _, answer = await post(local_model, PATHS["responses"], sent)
    call = answer["output"][-1]
    assert call["type"] == "custom_tool_call"
    assert call["input"].splitlines()[1:3] == ["*** Add File: /x/y.txt", "+hello from the local model"]
    _, answer = await post(local_model, PATHS["chat"], body("chat", "[[fake:write-hello path=/x/y]]", tools=True))
    assert text_and_call("chat", answer)[1] == {"command": "printf %s 'hello from the local model\n' > /x/y"}


async def test_a_tool_nobody_offers_is_said(local_model: LocalModel) -> None:
    local_model.script("look", [Step(tools=[{"do": "read", "path": "/x"}])])
    status, answer = await post(local_model, PATHS["chat"], body("chat", "[[fake:look]]", tools=True))
    assert status == 400 and answer["error"]["message"] == "local model: no reading tool among: bash"


async def test_models_are_listed_in_both_shapes(local_model: LocalModel) -> None:
    async with aiohttp.ClientSession(local_model.base_url) as http:
        async with http.get("/v1/models") as response:
            assert [m["id"] for m in (await response.json())["data"]] == ["local-model"]
        async with http.get("/v1beta/models") as response:
            assert [m["name"] for m in (await response.json())["models"]] == ["models/local-model"]
        async with http.get("/v1/models/other") as response:
            assert response.status == 404
        async with http.get("/anything") as response:
            assert response.status == 404


async def test_a_key_and_known_models_are_insisted_on() -> None:
    async with LocalModel(key="right", known_only=True) as model, aiohttp.ClientSession(model.base_url) as http:
        for headers, name, expected in (
            ({"authorization": "Bearer wrong"}, "local-model", 401),
            ({"x-api-key": "right"}, "local-model", 200),
            ({"authorization": "Bearer right"}, "other", 404),
        ):
            sent = body("chat", "hello") | {"model": name}
            async with http.post(PATHS["chat"], json=sent, headers=headers) as response:
                assert response.status == expected
