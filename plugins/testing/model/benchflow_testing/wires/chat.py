"""OpenAI chat completions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from benchflow_testing.neutral import (
    Message,
    ModelAnswer,
    ModelRequest,
    ModelToolCall,
    OfferedTool,
    Role,
    new_id,
    pieces,
    text_of,
)
from benchflow_testing.wires import ModelWire, sse

__all__ = ["CHAT"]

_ROLES: Mapping[str, Role] = {"assistant": "assistant", "tool": "tool", "function": "tool", "user": "user"}


def _parse(body: Mapping[str, Any]) -> ModelRequest:
    messages = tuple(
        Message(_ROLES.get(m.get("role", ""), "system"), text_of(m.get("content"))) for m in body.get("messages") or ()
    )
    tools = [_tool(t) for t in body.get("tools") or ()]
    tools += [OfferedTool(f["name"], f.get("parameters") or {}) for f in body.get("functions") or ()]
    wanted = (body.get("response_format") or {}).get("json_schema") or {}
    return ModelRequest(messages, {tool.name: tool for tool in tools}, wanted.get("schema"))


def _tool(value: Mapping[str, Any]) -> OfferedTool:
    inner = value.get("function") or value.get("custom") or value
    name = inner.get("name") or value.get("type", "")
    return OfferedTool(name, inner.get("parameters") or {}, freeform=value.get("type") == "custom")


def _call(call: ModelToolCall) -> dict[str, Any]:
    if isinstance(call.arguments, str):
        return {"id": new_id("call_"), "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": new_id("call_"), "type": "function", "function": function}


def _usage(answer: ModelAnswer) -> dict[str, Any] | None:
    t = answer.tokens
    if t is None:
        return None
    return {
        "prompt_tokens": t.input,
        "completion_tokens": t.output + t.reasoning,
        "total_tokens": t.input + t.output + t.reasoning,
        "prompt_tokens_details": {"cached_tokens": t.cached},
        "completion_tokens_details": {"reasoning_tokens": t.reasoning},
    }


def _stop(answer: ModelAnswer) -> str:
    return answer.stop or ("tool_calls" if answer.calls else "stop")


def _whole(answer: ModelAnswer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.think:
        message["reasoning_content"] = answer.think
    if answer.calls:
        message["tool_calls"] = [_call(call) for call in answer.calls]
    body = {
        "id": new_id("chatcmpl-"),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "finish_reason": _stop(answer)}],
    }
    return body if answer.tokens is None else {**body, "usage": _usage(answer)}


def _events(answer: ModelAnswer) -> Iterator[bytes]:
    base = {
        "id": new_id("chatcmpl-"),
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": answer.model,
    }
    if answer.stream_usage and answer.tokens:
        base["usage"] = None

    def chunk(delta: Mapping[str, Any], stop: str | None = None) -> bytes:
        return sse({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]})

    yield chunk({"role": "assistant", "content": ""})
    for part in pieces(answer.think):
        yield chunk({"reasoning_content": part})
    for part in pieces(answer.text):
        yield chunk({"content": part})
    for index, call in enumerate(map(_call, answer.calls)):
        kind = call["type"]
        field = "arguments" if kind == "function" else "input"
        argument = call[kind].pop(field)
        yield chunk({"tool_calls": [{"index": index, **call, kind: {**call[kind], field: ""}}]})
        for part in pieces(argument):
            yield chunk({"tool_calls": [{"index": index, kind: {field: part}}]})
    yield chunk({}, _stop(answer))
    if answer.stream_usage and answer.tokens:
        yield sse({**base, "choices": [], "usage": _usage(answer)})
    yield b"data: [DONE]\n\n"


def _error(status: int, message: str, code: str | None) -> dict[str, Any]:
    kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


CHAT = ModelWire("chat", _parse, _whole, _events, _error)
