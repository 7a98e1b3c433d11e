"""Bodies that ask for more than a model's answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

REDIRECTIONS: list[tuple[dict[str, Any], str]] = [
    ({"api_base": "http://evil"}, "api_base"),
    ({"base_url": "http://evil"}, "base_url"),
    ({"api_key": "k"}, "api_key"),
    ({"apiBase": "http://evil"}, "apiBase"),
    ({"API-BASE": "http://evil"}, "API-BASE"),
    ({"extra_body": {}}, "extra_body"),
    ({"metadata": {"a": [{"api_base": "x"}]}}, "metadata.a.api_base"),
    ({"litellm_params": {"model": "x"}}, "litellm_params"),
    ({"fallbacks": ["other"]}, "fallbacks"),
    ({"models": ["other"]}, "models"),
    ({"Model": "other"}, "Model"),
    ({"user_config": {}}, "user_config"),
    ({"vertex_project": "p"}, "vertex_project"),
]


@pytest.mark.parametrize(("extra", "field"), REDIRECTIONS)
async def test_a_body_cannot_choose_its_upstream(bench: Any, extra: dict[str, Any], field: str) -> None:
    key = await bench.key("chat")
    status, raw, _ = await bench.ask(key, "chat", "hello", **extra)
    assert status == 400 and f"'{field}' is refused" in json.loads(raw)["error"]["message"]
    assert not bench.model.log
    (exchange,) = await bench.exchanges(key)
    assert exchange.error_type == "refused" and exchange.status == 400


async def test_a_key_named_twice_is_ambiguous(bench: Any) -> None:
    key = await bench.key("chat")
    raw = b'{"model":"local-model","model":"other","messages":[]}'
    status, said, _ = await bench.post(key, bench.words.path("chat"), raw)
    assert status == 400 and b"ambiguous" in said and not bench.model.log


async def test_tools_may_have_parameters_of_any_name(bench: Any) -> None:
    schema = {"type": "object", "properties": {"api_base": {"type": "string"}, "base_url": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "bash", "parameters": schema}}]
    key = await bench.key("chat", allow_provider_tools=False)
    said = [{"role": "user", "content": [{"type": "text", "text": '{"api_key": 1}'}]}]
    body = {"model": "local-model", "messages": said, "tools": tools, "metadata": {"user": "x"}}
    status, _, _ = await bench.post(key, bench.words.path("chat"), body)
    assert status == 200


PICTURE = {"type": "image_url", "image_url": {"url": "https://x.example/?secret"}}
INLINE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
PROVIDER_TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("chat", {"web_search_options": {"search_context_size": "low"}}),
    ("chat", {"plugins": [{"id": "web"}]}),
    ("chat", {"tools": [{"type": "web_search"}]}),
    ("chat", {"messages": [{"role": "user", "content": [PICTURE]}]}),
    ("responses", {"tools": [{"type": "web_search_preview"}]}),
    ("responses", {"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]}),
    ("responses", {"tools": [{"type": "mcp", "server_url": "https://x.example"}]}),
    ("responses", {"tools": [{"type": "shell", "environment": {"type": "container_auto"}}]}),
    ("responses", {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "web_search"}]}]}),
    ("responses", {"input": [{"type": "additional_tools", "tools": [{"type": "web_search"}]}]}),
    (
        "responses",
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "https://x.example"}]}]},
    ),
    ("messages", {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
    ("messages", {"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}),
    ("messages", {"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]}),
    ("messages", {"mcp_servers": [{"type": "url", "url": "https://x.example", "name": "x"}]}),
    (
        "messages",
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "image", "source": {"type": "url", "url": "https://x.example"}}],
                }
            ]
        },
    ),
    ("gemini", {"tools": [{"googleSearch": {}}]}),
    ("gemini", {"tools": [{"functionDeclarations": []}, {"urlContext": {}}]}),
    ("gemini", {"tools": [{"code_execution": {}}]}),
    ("gemini", {"contents": [{"role": "user", "parts": [{"fileData": {"fileUri": "https://x.example"}}]}]}),
]


@pytest.mark.parametrize(("wire", "extra"), PROVIDER_TOOLS)
async def test_without_network_the_provider_fetches_nothing_either(
    bench: Any, wire: Any, extra: dict[str, Any]
) -> None:
    closed, open_ = await bench.key(wire, allow_provider_tools=False), await bench.key(wire)
    status, raw, _ = await bench.ask(closed, wire, "hello", **extra)
    assert status == 400 and "without network" in json.loads(raw)["error"]["message"]
    assert not bench.model.log
    assert (await bench.ask(open_, wire, "hello", **extra))[0] == 200


CLIENT_TOOLS: list[tuple[str, dict[str, Any]]] = [
    (
        "chat",
        {"messages": [{"role": "user", "content": [{**PICTURE, "image_url": {"url": "data:image/png;base64,AA"}}]}]},
    ),
    ("responses", {"tools": [{"type": "local_shell"}, {"type": "custom", "name": "apply_patch"}, {"type": "shell"}]}),
    ("messages", {"tools": [{"type": "bash_20250124", "name": "bash"}, {"name": "x", "input_schema": {}}]}),
    ("gemini", {"tools": [{"function_declarations": [{"name": "x"}]}]}),
    ("messages", {"messages": [{"role": "user", "content": "see https://x.example and source: url"}]}),
    (
        "messages",
        {
            "messages": [
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "t", "name": "cp", "input": {"source": "a"}}],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "done"}]},
            ]
        },
    ),
]


@pytest.mark.parametrize(("wire", "extra"), CLIENT_TOOLS)
async def test_without_network_the_agents_own_tools_work(bench: Any, wire: Any, extra: dict[str, Any]) -> None:
    key = await bench.key(wire, allow_provider_tools=False)
    status, raw, _ = await bench.ask(key, wire, "hello", **extra)
    assert status == 200, raw


@pytest.mark.parametrize("raw", [b"", b"nonsense", b"[1]", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"model": NaN'])
async def test_a_body_that_is_no_object_is_said_to_be_none(bench: Any, raw: bytes) -> None:
    key = await bench.key("chat")
    status, said, _ = await bench.post(key, bench.words.path("chat"), raw)
    assert status == 400 and b"is not" in said and not bench.model.log
    (exchange,) = await bench.exchanges(key)
    assert exchange.request == {} and exchange.error_type == "refused"
