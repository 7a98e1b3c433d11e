"""What a tool call shows, and the text of a message, from ACP's content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["as_text", "blocks_of", "printed", "text_of"]

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_LARGEST_IMAGE = 2_000_000


def text_of(data: Mapping[str, Any]) -> str:
    content = data.get("content")
    if isinstance(content, Mapping):
        return str(content.get("text") or f"[{content.get('type', 'content')}]")
    return str(data.get("text") or (content if isinstance(content, str) else ""))


def blocks_of(content: Any) -> list[dict[str, Any]]:
    """Text, changes of files, pictures; anything else as JSON."""
    return [_block(item) for item in (content if isinstance(content, list) else [content])]


def _block(item: Any) -> dict[str, Any]:
    if not isinstance(item, Mapping):
        return {"is": "text", "text": as_text(item)}
    if item.get("type") == "diff":
        old, new = item.get("oldText"), item.get("newText")
        return {"is": "diff", "path": str(item.get("path") or ""), "old": as_text(old), "new": as_text(new)}
    if item.get("type") == "terminal":
        return {"is": "terminal"}
    inner = item.get("content") if item.get("type") == "content" else item
    if isinstance(inner, Mapping):
        if isinstance(inner.get("text"), str):
            return {"is": "text", "text": inner["text"]}
        mime, data = inner.get("mimeType") or inner.get("media_type"), inner.get("data")
        if mime in _IMAGES and isinstance(data, str) and len(data) < _LARGEST_IMAGE:
            return {"is": "image", "mime": mime, "data": data}
    return {"is": "text", "text": as_text(item)}


def as_text(value: Any) -> str:
    """A value as a reader wants it: text as it is, anything else as indented JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def printed(output: Any) -> tuple[list[str], int | None] | None:
    """What a command wrote, on each stream, and its exit code, where a raw output is just that."""
    if not isinstance(output, Mapping) or not output or set(output) - {"stdout", "stderr", "exit_code", "exitCode"}:
        return None
    code = output.get("exit_code", output.get("exitCode"))
    parts = [as_text(output.get(name)).strip("\n") for name in ("stdout", "stderr")]
    return [part for part in parts if part.strip()], code if isinstance(code, int) else None
