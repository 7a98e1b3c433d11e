"""Blocks and attachments: as much of Block Kit's rules as a message can break."""

from __future__ import annotations

from typing import Any

from benchflow_service_claw_slack.call import SlackCall, SlackError

__all__ = ["attachments_of", "blocks_of", "check_blocks"]

MAX_BLOCKS, MAX_ATTACHMENTS = 50, 100
_TYPES = {
    "actions",
    "alert",
    "card",
    "carousel",
    "context",
    "context_actions",
    "divider",
    "file",
    "header",
    "image",
    "input",
    "markdown",
    "plan",
    "rich_text",
    "section",
    "table",
    "task_card",
    "video",
}
_ELEMENTS = {
    "actions": "elements",
    "context": "elements",
    "rich_text": "elements",
}


def blocks_of(call: SlackCall) -> list[Any] | None:
    blocks = call.structure("blocks", "invalid_blocks_format")
    if blocks is None:
        return None
    if not isinstance(blocks, list):
        raise SlackError("invalid_blocks_format")
    check_blocks(blocks)
    return blocks


def check_blocks(blocks: list[Any], most: int = MAX_BLOCKS) -> None:
    faults: list[str] = []
    if len(blocks) > most:
        faults.append(f"no more than {most} items allowed [json-pointer:/blocks]")
    seen: set[str] = set()
    for number, block in enumerate(blocks[:most]):
        faults += [f"{text} [json-pointer:/blocks/{number}{where}]" for where, text in _faults(block)]
        name = block.get("block_id") if isinstance(block, dict) else None
        if isinstance(name, str) and name in seen:
            faults.append(f"block_id already exists: {name} [json-pointer:/blocks/{number}/block_id]")
        elif isinstance(name, str):
            seen.add(name)
    if faults:
        messages = [f"[ERROR] {text}" for text in faults]
        raise SlackError("invalid_blocks", errors=faults, response_metadata={"messages": messages})


def _faults(block: Any) -> list[tuple[str, str]]:
    if not isinstance(block, dict):
        return [("", "must be an object")]
    kind = block.get("type")
    if not isinstance(kind, str):
        return [("", "missing required field: type")]
    if kind not in _TYPES:
        return [("/type", f"unsupported type: {kind}")]
    faults = _of_kind(block, kind)
    if isinstance(block.get("block_id"), str) and len(block["block_id"]) > 255:
        faults.append(("/block_id", "must be less than 256 characters"))
    return faults


def _of_kind(block: dict[str, Any], kind: str) -> list[tuple[str, str]]:
    if kind == "section":
        if "text" not in block and not block.get("fields"):
            return [("", "missing required field: text or fields")]
        faults = _text(block["text"], "/text", 3000) if "text" in block else []
        fields = block.get("fields", [])
        if not isinstance(fields, list) or len(fields) > 10:
            return [*faults, ("/fields", "must be a list of at most 10 items")]
        return faults + [f for n, field in enumerate(fields) for f in _text(field, f"/fields/{n}", 2000)]
    if kind == "header":
        return _text(block.get("text"), "/text", 150, plain=True)
    if kind == "image":
        missing = [name for name in ("alt_text",) if not block.get(name)]
        if not block.get("image_url") and not block.get("slack_file"):
            missing.append("image_url")
        return [("", f"missing required field: {name}") for name in missing]
    if kind == "markdown":
        text = block.get("text")
        return [] if isinstance(text, str) and 0 < len(text) <= 12_000 else [("/text", "must be 1 to 12000 characters")]
    if kind in _ELEMENTS:
        items = block.get(_ELEMENTS[kind])
        most = 25 if kind == "actions" else 10 if kind == "context" else 10_000
        if not isinstance(items, list) or not items:
            return [("", "missing required field: elements")]
        if len(items) > most:
            return [("/elements", f"no more than {most} items allowed")]
        bad = [n for n, item in enumerate(items) if not isinstance(item, dict) or not isinstance(item.get("type"), str)]
        return [(f"/elements/{n}", "missing required field: type") for n in bad]
    if kind == "input" and ("label" not in block or "element" not in block):
        return [("", "missing required field: label and element")]
    return []


def _text(text: Any, where: str, most: int, plain: bool = False) -> list[tuple[str, str]]:
    if not isinstance(text, dict):
        return [(where, "missing required field: text")]
    kinds = ("plain_text",) if plain else ("plain_text", "mrkdwn")
    if text.get("type") not in kinds:
        return [(where + "/type", f"must be one of: {', '.join(kinds)}")]
    value = text.get("text")
    if not isinstance(value, str) or not value:
        return [(where + "/text", "must be more than 0 characters")]
    if len(value) > most:
        return [(where + "/text", f"must be less than {most + 1} characters")]
    return []


def attachments_of(call: SlackCall) -> list[Any] | None:
    found = call.structure("attachments", "invalid_attachments")
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise SlackError("invalid_attachments")
    if len(found) > MAX_ATTACHMENTS:
        raise SlackError("too_many_attachments")
    shown = []
    for number, one in enumerate(found, 1):
        if isinstance(one.get("blocks"), list):
            check_blocks(one["blocks"])
        fallback = one.get("fallback") or one.get("text") or one.get("title") or "[no preview available]"
        shown.append({"id": number, **one, "fallback": fallback})
    return shown
