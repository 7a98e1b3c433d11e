"""OpenAI responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchflow_core.contracts import Usage
from benchflow_gateway_relay.replies.counts import count, usage_of

__all__ = ["ended", "join", "usage"]


def join(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The last response event has it all. Without one, what was done before the cut is put into the first."""
    whole: dict[str, Any] = {}
    items: dict[int, Any] = {}
    for event in events:
        kind = event.get("type")
        if isinstance(event.get("response"), dict):
            whole = {**event["response"]}
        elif kind == "response.output_item.done":
            items[event.get("output_index", len(items))] = event.get("item")
        elif kind == "error":
            said = event.get("error")
            whole["error"] = said if isinstance(said, Mapping) else {k: event.get(k) for k in ("code", "message")}
        elif kind is None and event.get("error"):
            whole["error"] = event["error"]
    if items and not whole.get("output"):
        whole["output"] = [items[index] for index in sorted(items)]
    return whole


def usage(response: Mapping[str, Any]) -> Usage:
    told = response.get("usage")
    return usage_of(
        count(told, "input_tokens"),
        count(told, "output_tokens"),
        count(told, "input_tokens_details", "cached_tokens"),
    )


def ended(response: Mapping[str, Any]) -> bool:
    """A compacted conversation comes without a status."""
    return response.get("status", "completed") not in ("in_progress", "queued")
