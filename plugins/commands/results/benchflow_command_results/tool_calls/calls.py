"""The tool calls of a rollout, from its event log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from benchflow_core.contracts import RolloutRecord

__all__ = ["calls", "lines"]

_ENDED = ("completed", "failed", "cancelled")


def calls(record: RolloutRecord) -> Iterator[dict[str, Any]]:
    """In the order they ended; those that never did come last, without `seconds`."""
    open_calls: dict[tuple[Any, ...], dict[str, Any]] = {}
    for event in record.events():
        data = event.get("data")
        if event.get("kind") not in ("tool_call", "tool_call_update") or not isinstance(data, Mapping):
            continue
        key = (event.get("session"), event.get("turn"), data.get("toolCallId"))
        call = open_calls.setdefault(key, _new(record, event))
        call.update({name: str(data[name]) for name in ("kind", "title", "status") if data.get(name)})
        if call["status"] in _ENDED:
            call["seconds"] = round(float(event.get("at") or 0) - call["at"], 6)
            yield open_calls.pop(key)
    yield from open_calls.values()


def _new(record: RolloutRecord, event: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "rollout": record.result.get("rollout_name") or record.dir.name,
        "task": record.result.get("task_name"),
        "role": event.get("role"),
        "turn": event.get("turn"),
        "kind": "other",
        "title": "",
        "status": "pending",
        "at": float(event.get("at") or 0),
        "seconds": None,
    }


def lines(record: RolloutRecord) -> bytes:
    return "".join(json.dumps(call, ensure_ascii=False) + "\n" for call in calls(record)).encode("utf-8", "replace")
