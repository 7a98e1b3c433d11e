"""A finished rollout as one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from benchflow_core.contracts import RolloutRecord


def to_line(record: RolloutRecord) -> bytes:
    said = [text for event in record.events() if (text := _text(event))]
    row = {"rollout": record.dir.name, "rewards": record.result.get("rewards"), "said": "".join(said)}
    return json.dumps(row, ensure_ascii=False, sort_keys=True).encode() + b"\n"


def _text(event: Mapping[str, Any]) -> str:
    content = event.get("data", {}).get("content") if event.get("kind") == "agent_message_chunk" else None
    return str(content.get("text", "")) if isinstance(content, dict) else ""
