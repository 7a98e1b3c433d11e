"""What an agent said and did, out of a rollout's events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

__all__ = ["Transcript", "read_transcript"]

_ONE: Final = 6_000
_ALL: Final = 120_000


@dataclass
class Transcript:
    """In the order it happened."""

    said: str = ""
    """The agent's own messages."""
    lines: list[str] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    """Tool calls: title and arguments."""

    def text(self) -> str:
        """For a judge: everything, the middle left out where it is too long."""
        whole = "\n".join(self.lines)
        if len(whole) <= _ALL:
            return whole
        half = _ALL // 2
        return f"{whole[:half]}\n[… {len(whole) - _ALL} characters left out …]\n{whole[-half:]}"


def read_transcript(file: Path | None) -> Transcript:
    found = Transcript()
    for event in _events(file):
        kind, data = event.get("kind"), event.get("data") or {}
        if kind == "turn_started":
            _add(found, "user", str(data.get("prompt") or ""))
        elif kind in ("agent_message_chunk", "agent_message"):
            text = _text(data.get("content", data.get("text")))
            found.said += text
            _add(found, "agent", text, join=True)
        elif kind == "tool_call":
            call = f"{data.get('title') or ''} {_json(data.get('rawInput'))}".strip()
            found.used.append(call)
            _add(found, "tool call", call)
        elif kind == "tool_call_update" and data.get("status") in ("completed", "failed"):
            _add(found, f"tool {data['status']}", _json(data.get("rawOutput")) or _text(data.get("content")))
    return found


def _events(file: Path | None) -> Iterator[dict[str, Any]]:
    if file is None or not file.is_file():
        return
    with file.open("rb") as lines:
        for line in lines:
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict) and isinstance(value.get("data"), dict):
                yield value


def _add(found: Transcript, who: str, text: str, *, join: bool = False) -> None:
    """Chunks of one message are one line; a line break cannot pass for the next speaker."""
    if not text:
        return
    head = f"[{who}] "
    if join and found.lines and found.lines[-1].startswith(head):
        found.lines[-1] += text.replace("\n", "\n    ")
    else:
        cut = text if len(text) <= _ONE else f"{text[: _ONE // 2]} […] {text[-_ONE // 2 :]}"
        found.lines.append(head + cut.replace("\n", "\n    "))


def _json(value: Any) -> str:
    return "" if value in (None, {}, []) else json.dumps(value, ensure_ascii=False)


def _text(value: Any) -> str:
    """Of content as ACP has it: a block, a list of blocks, or plain text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_text(item) for item in value)
    if isinstance(value, dict):
        return _text(value.get("text") or value.get("content"))
    return ""
