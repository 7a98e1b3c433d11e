"""OpenAI responses."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
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
from benchflow_testing.wires.chat import CHAT

__all__ = ["RESPONSES"]

_ROLES: Mapping[str, Role] = {"assistant": "assistant", "user": "user"}


def _parse(body: Mapping[str, Any]) -> ModelRequest:
    items = body.get("input") or []
    if isinstance(items, str):
        items = [{"type": "message", "role": "user", "content": items}]
    messages: list[Message] = []
    tools = list(body.get("tools") or ())
    for item in items:
        kind = item.get("type") or "message"
        if kind == "additional_tools":  # Codex hands the tools of its newest models over as an input item
            tools += item.get("tools") or []
            continue
        role = _role(kind, item)
        text = text_of(item.get("content")) if kind == "message" else ""
        if role == "assistant" and messages and messages[-1].role == "assistant":
            text = messages.pop().text + text  # reasoning, text and calls of one answer are several items
        messages.append(Message(role, text))
    wanted = (body.get("text") or {}).get("format") or {}
    return ModelRequest(tuple(messages), {t.name: t for t in _tools(tools)}, wanted.get("schema"))


def _role(kind: str, item: Mapping[str, Any]) -> Role:
    if kind == "message":
        return _ROLES.get(item.get("role", ""), "system")
    return "tool" if kind.endswith("_output") else "assistant"


def _tools(values: Sequence[Mapping[str, Any]], namespace: str = "") -> Iterator[OfferedTool]:
    for value in values:
        if value.get("type") == "namespace":
            yield from _tools(value.get("tools") or (), value.get("name", ""))
            continue
        freeform = value.get("type") == "custom"
        yield OfferedTool(
            value.get("name") or value.get("type", ""),
            value.get("parameters") or {},
            freeform=freeform,
            javascript=freeform and "JavaScript" in (value.get("description") or ""),
            namespace=namespace,
        )


def _items(answer: ModelAnswer) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if answer.think:
        summary = [{"type": "summary_text", "text": answer.think}]
        items.append({"type": "reasoning", "id": new_id("rs_"), "summary": summary})
    if answer.text:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        message = {"type": "message", "id": new_id("msg_"), "role": "assistant", "status": "completed"}
        items.append({**message, "content": content})
    return items + [_call(call) for call in answer.calls]


def _call(call: ModelToolCall) -> dict[str, Any]:
    item: dict[str, Any] = {"call_id": new_id("call_"), "name": call.name, "status": "completed"}
    if isinstance(call.arguments, str):
        item |= {"type": "custom_tool_call", "id": new_id("ctc_"), "input": call.arguments}
        in_namespace = call.namespace not in ("", "functions")
    else:
        item |= {"type": "function_call", "id": new_id("fc_"), "arguments": json.dumps(call.arguments)}
        in_namespace = bool(call.namespace)
    return {**item, "namespace": call.namespace} if in_namespace else item


def _response(answer: ModelAnswer, identity: str, status: str, items: Sequence[Any]) -> dict[str, Any]:
    t = answer.tokens if status == "completed" else None
    usage = t and {
        "input_tokens": t.input,
        "input_tokens_details": {"cached_tokens": t.cached},
        "output_tokens": t.output + t.reasoning,
        "output_tokens_details": {"reasoning_tokens": t.reasoning},
        "total_tokens": t.input + t.output + t.reasoning,
    }
    return {
        "id": identity,
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "model": answer.model,
        "output": list(items),
        "usage": usage,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
    }


def _whole(answer: ModelAnswer) -> dict[str, Any]:
    return _response(answer, new_id("resp_"), "completed", _items(answer))


def _events(answer: ModelAnswer) -> Iterator[bytes]:
    identity, items = new_id("resp_"), _items(answer)
    told = [
        ("response.created", {"response": _response(answer, identity, "in_progress", ())}),
        ("response.in_progress", {"response": _response(answer, identity, "in_progress", ())}),
        *(event for index, item in enumerate(items) for event in _item_events(index, item)),
        ("response.completed", {"response": _response(answer, identity, "completed", items)}),
    ]
    for number, (kind, values) in enumerate(told):
        yield sse({"type": kind, "sequence_number": number, **values}, kind)


def _item_events(index: int, item: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """One output item: it is added, filled, and done."""
    place = {"item_id": item["id"], "output_index": index}
    fill = {"message": _message, "reasoning": _reasoning, "custom_tool_call": _input, "function_call": _arguments}
    parts = {"message": "content", "reasoning": "summary"}
    texts = {"custom_tool_call": "input", "function_call": "arguments"}
    kind = item["type"]
    begun = {**item, parts[kind]: []} if kind in parts else {**item, texts[kind]: ""}
    if "status" in item:
        begun["status"] = "in_progress"
    yield "response.output_item.added", {"output_index": index, "item": begun}
    yield from fill[kind](item, place)
    yield "response.output_item.done", {"output_index": index, "item": item}


def _message(item: Mapping[str, Any], place: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    part, where = item["content"][0], {**place, "content_index": 0}
    yield "response.content_part.added", {**where, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield "response.output_text.delta", {**where, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**where, "text": part["text"], "logprobs": []}
    yield "response.content_part.done", {**where, "part": part}


def _reasoning(item: Mapping[str, Any], place: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    part, where = item["summary"][0], {**place, "summary_index": 0}
    yield "response.reasoning_summary_part.added", {**where, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield "response.reasoning_summary_text.delta", {**where, "delta": piece}
    yield "response.reasoning_summary_text.done", {**where, "text": part["text"]}
    yield "response.reasoning_summary_part.done", {**where, "part": part}


def _input(item: Mapping[str, Any], place: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for piece in pieces(item["input"]):
        yield "response.custom_tool_call_input.delta", {**place, "delta": piece}
    yield "response.custom_tool_call_input.done", {**place, "input": item["input"]}


def _arguments(item: Mapping[str, Any], place: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for piece in pieces(item["arguments"]):
        yield "response.function_call_arguments.delta", {**place, "delta": piece}
    yield "response.function_call_arguments.done", {**place, "name": item["name"], "arguments": item["arguments"]}


RESPONSES = ModelWire("responses", _parse, _whole, _events, CHAT.error)
