"""Anthropic messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from benchflow_testing.neutral import Message, ModelAnswer, ModelRequest, OfferedTool, new_id, pieces, text_of
from benchflow_testing.wires import ModelWire, sse

__all__ = ["MESSAGES"]

_SIGNATURE = "c2NyaXB0ZWQ="


def _parse(body: Mapping[str, Any]) -> ModelRequest:
    messages = tuple(
        Message("assistant" if m.get("role") == "assistant" else "user", text_of(m.get("content")))
        for m in body.get("messages") or ()
    )
    tools = {
        t["name"]: OfferedTool(t["name"], t.get("input_schema") or {}) for t in body.get("tools") or () if "name" in t
    }
    wanted = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    return ModelRequest(messages, tools, wanted.get("schema"))


def _message(answer: ModelAnswer) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    if answer.think:
        blocks.append({"type": "thinking", "thinking": answer.think, "signature": _SIGNATURE})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    for call in answer.calls:
        blocks.append({"type": "tool_use", "id": new_id("toolu_"), "name": call.name, "input": call.arguments})
    body = {
        "id": new_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": blocks,
        "stop_reason": answer.stop or ("tool_use" if answer.calls else "end_turn"),
        "stop_sequence": None,
    }
    t = answer.tokens
    if t is None:
        return body
    usage = {
        "input_tokens": t.input - t.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": t.cached,
        "output_tokens": t.output + t.reasoning,
    }
    return {**body, "usage": usage}


def _events(answer: ModelAnswer) -> Iterator[bytes]:
    body = _message(answer)
    blocks, usage = body["content"], body.get("usage")

    def event(kind: str, **values: Any) -> bytes:
        return sse({"type": kind, **values}, kind)

    start = {**body, "content": [], "stop_reason": None}
    if usage:
        start["usage"] = {**usage, "output_tokens": 1}
    yield event("message_start", message=start)
    yield event("ping")
    for index, block in enumerate(blocks):
        empty, deltas = _parts(block)
        yield event("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    end = {"delta": {"stop_reason": body["stop_reason"], "stop_sequence": None}}
    yield event("message_delta", **end, **({"usage": {"output_tokens": usage["output_tokens"]}} if usage else {}))
    yield event("message_stop")


def _parts(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it begins, and what then comes of it."""
    if block["type"] == "text":
        return {"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in pieces(block["text"])]
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": p} for p in pieces(block["thinking"])]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signed]
    argument = pieces(json.dumps(block["input"]))
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": p} for p in argument]


def _error(status: int, message: str, code: str | None) -> dict[str, Any]:
    kinds = {
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        429: "rate_limit_error",
        529: "overloaded_error",
    }
    kind = code or kinds.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


MESSAGES = ModelWire("messages", _parse, _message, _events, _error)
