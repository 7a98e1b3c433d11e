"""Anthropic messages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from benchflow_core.contracts import Usage
from benchflow_gateway_relay.replies.counts import added, count, usage_of

__all__ = ["ended", "join", "usage"]

_GROWING = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}


def join(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    texts: dict[tuple[int, str], list[str]] = {}
    final = False
    for event in events:
        kind = event.get("type")
        if kind == "message_start" and isinstance(event.get("message"), dict):
            whole = {**event["message"]}
        elif kind == "content_block_start" and isinstance(event.get("content_block"), dict):
            blocks[event.get("index", len(blocks))] = {**event["content_block"]}
        elif kind == "content_block_delta" and event.get("index") in blocks:
            _add(event["index"], event.get("delta"), blocks, texts)
        elif kind == "message_delta":
            whole.update(event.get("delta") or {})
            final = _merge_usage(whole, event.get("usage")) or final
        elif event.get("error"):
            whole["error"] = event["error"]
    for (index, name), parts in texts.items():
        _close(blocks[index], name, "".join(parts))
    if blocks:
        whole["content"] = [blocks[index] for index in sorted(blocks)]
    if not final and isinstance(whole.get("usage"), Mapping):
        # The count in message_start is a placeholder: how much was generated is said at the end only.
        whole["usage"] = {k: v for k, v in whole["usage"].items() if k != "output_tokens"}
    return whole


def _merge_usage(whole: dict[str, Any], told: Any) -> bool:
    if not isinstance(told, Mapping):
        return False
    before = whole.get("usage")
    known = {key: value for key, value in told.items() if value is not None}
    whole["usage"] = {**(before if isinstance(before, Mapping) else {}), **known}
    return "output_tokens" in known


def _add(index: int, delta: Any, blocks: Mapping[int, Any], texts: dict[tuple[int, str], list[str]]) -> None:
    if not isinstance(delta, Mapping):
        return
    field = _GROWING.get(str(delta.get("type")))
    if field and isinstance(delta.get(field), str):
        texts.setdefault((index, field), []).append(delta[field])
    elif delta.get("type") == "citations_delta":
        blocks[index].setdefault("citations", []).append(delta.get("citation"))


def _close(block: dict[str, Any], name: str, text: str) -> None:
    if name != "partial_json":
        block[name] = str(block.get(name) or "") + text
        return
    try:
        block["input"] = json.loads(text)
    except ValueError:
        block["partial_json"] = text


def usage(response: Mapping[str, Any]) -> Usage:
    told = response.get("usage")
    read, written = count(told, "cache_read_input_tokens"), count(told, "cache_creation_input_tokens")
    fresh = count(told, "input_tokens")
    total = None if fresh is None else added(fresh, read, written)
    return usage_of(total, count(told, "output_tokens"), read, written)


def ended(response: Mapping[str, Any]) -> bool:
    return bool(response.get("stop_reason"))
