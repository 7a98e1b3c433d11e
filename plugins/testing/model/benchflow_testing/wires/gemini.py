"""Gemini generateContent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchflow_testing.neutral import Message, ModelAnswer, ModelRequest, OfferedTool, new_id, pieces
from benchflow_testing.wires import ModelWire, sse

__all__ = ["GEMINI", "chunks"]

_SIGNATURE = "c2NyaXB0ZWQ="


def _get(value: Mapping[str, Any], *names: str) -> Any:
    """Google's clients write both `camelCase` and `snake_case`."""
    return next((value[name] for name in names if value.get(name)), None)


def _parse(body: Mapping[str, Any]) -> ModelRequest:
    messages = []
    for content in body.get("contents") or ():
        text = "\n".join(p.get("text") or "" for p in content.get("parts") or () if not p.get("thought"))
        messages.append(Message("assistant" if content.get("role") == "model" else "user", text))
    tools = {}
    for group in body.get("tools") or ():
        for f in _get(group, "functionDeclarations", "function_declarations") or ():
            schema = _get(f, "parametersJsonSchema", "parameters_json_schema", "parameters") or {}
            tools[f["name"]] = OfferedTool(f["name"], schema)
    config = _get(body, "generationConfig", "generation_config") or {}
    schema = _get(config, "responseJsonSchema", "response_json_schema", "responseSchema", "response_schema")
    return ModelRequest(tuple(messages), tools, schema)


def _calls(answer: ModelAnswer) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = [{"functionCall": {"name": c.name, "args": c.arguments}} for c in answer.calls]
    for call in calls[:1]:
        call["thoughtSignature"] = _SIGNATURE
    return calls


def _chunk(
    answer: ModelAnswer, identity: str, parts: Sequence[Mapping[str, Any]], stop: str | None = None
) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    body: dict[str, Any] = {"candidates": [candidate], "modelVersion": answer.model, "responseId": identity}
    if stop is None:
        return body
    candidate["finishReason"] = stop
    t = answer.tokens
    if t is not None:
        body["usageMetadata"] = {
            "promptTokenCount": t.input,
            "candidatesTokenCount": t.output,
            "cachedContentTokenCount": t.cached,
            "thoughtsTokenCount": t.reasoning,
            "totalTokenCount": t.input + t.output + t.reasoning,
        }
    return body


def _whole(answer: ModelAnswer) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": answer.think, "thought": True}] if answer.think else []
    if answer.text:
        parts.append({"text": answer.text})
    return _chunk(answer, new_id(""), [*parts, *_calls(answer)], answer.stop or "STOP")


def chunks(answer: ModelAnswer) -> list[dict[str, Any]]:
    """The parts of a streamed answer; the last one has the reason it stopped and the usage."""
    parts: list[dict[str, Any]] = [{"text": p, "thought": True} for p in pieces(answer.think)]
    parts += [{"text": p} for p in pieces(answer.text)]
    parts += _calls(answer)
    parts = parts or [{"text": ""}]
    identity, last = new_id(""), len(parts) - 1
    return [
        _chunk(answer, identity, [part], (answer.stop or "STOP") if i == last else None) for i, part in enumerate(parts)
    ]


def _events(answer: ModelAnswer) -> Iterator[bytes]:
    for chunk in chunks(answer):
        yield sse(chunk, end="\r\n\r\n")


def _error(status: int, message: str, code: str | None) -> dict[str, Any]:
    names = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
    names |= {429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}
    error: dict[str, Any] = {"code": status, "message": message, "status": names.get(status, "UNKNOWN")}
    if code:
        error["details"] = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code}]
    return {"error": error}


GEMINI = ModelWire("gemini", _parse, _whole, _events, _error)
