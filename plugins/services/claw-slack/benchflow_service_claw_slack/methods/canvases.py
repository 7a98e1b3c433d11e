"""canvases.* and conversations.canvases.create: documents in Markdown, changed section by section."""

from __future__ import annotations

import json
import re
from typing import Any

from benchflow_claw_kit.store import Row

from benchflow_service_claw_slack.call import SlackCall, SlackError, bad_arguments
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.channels import find_channel, is_member
from benchflow_service_claw_slack.objects.sharing import give, must_have, take_away

__all__: list[str] = []

Answer = dict[str, Any]
_LETTERS = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"
MAX = 100_000
_HEADERS = {"h1": "# ", "h2": "## ", "h3": "### "}
_PLACES = ("insert_at_start", "insert_at_end", "insert_before", "insert_after", "replace", "delete", "rename")


def _markdown(given: Any, needed: bool = True) -> str:
    if given is None and not needed:
        return ""
    if not isinstance(given, dict) or given.get("type") != "markdown" or not isinstance(given.get("markdown"), str):
        raise bad_arguments("document_content must have type 'markdown' and markdown text")
    if len(given["markdown"]) > MAX:
        raise SlackError("canvas_content_too_long")
    return str(given["markdown"])


def _sections(call: SlackCall, text: str) -> list[Answer]:
    """A heading, a paragraph, a list, a table or a code block each: what stands between empty lines."""
    parts: list[str] = []
    for block in re.split(r"(```.*?(?:```|\Z))", text, flags=re.S):
        if block.startswith("```"):
            parts.append(block)
        else:
            parts += [part for chunk in re.split(r"\n\s*\n", block) for part in _apart(chunk)]
    return [
        {"id": "temp:C:" + call.store.new_id("section", 20, _LETTERS).lower(), "markdown": part.strip("\n")}
        for part in parts
        if part.strip()
    ]


def _apart(text: str) -> list[str]:
    """Headings by themselves, the lines between them together."""
    parts: list[str] = []
    heading = True
    for line in text.split("\n"):
        is_heading = re.match(r"#{1,6} ", line) is not None
        if heading or is_heading:
            parts.append(line)
        else:
            parts[-1] += "\n" + line
        heading = is_heading
    return parts


def _insert(call: SlackCall, title: str, text: str, channel: str | None) -> str:
    canvas = "F0" + call.store.new_id("file", 9, _LETTERS)
    facts: Answer = {"title": title, "user": call.user, "channel": channel, "created": call.now, "updated": call.now}
    call.store.insert("canvases", id=canvas, sections=_sections(call, text), **facts)
    if channel:
        call.store.insert("shared_access", replace=True, item=canvas, target=channel, level="write")
    return canvas


def _find(call: SlackCall, level: str = "read") -> Row:
    row = call.store.one("SELECT * FROM canvases WHERE id = ?", call.need("canvas_id"))
    if row is None:
        raise SlackError("canvas_not_found")
    return must_have(call, row, level, "canvas_not_found")


def _channel_canvas(call: SlackCall) -> str:
    channel = find_channel(call, "channel_id")
    if not is_member(call.store, channel["id"], call.user):
        raise SlackError("not_in_channel")
    if call.store.one("SELECT 1 FROM canvases WHERE channel = ?", channel["id"]):
        raise SlackError("channel_canvas_already_exists")
    return str(channel["id"])


@method("canvases.create", "canvases:write")
def create(call: SlackCall) -> Answer:
    text = _markdown(call.structure("document_content", "invalid_arguments"), needed=False)
    channel = _channel_canvas(call) if call.has("channel_id") else None
    return {"canvas_id": _insert(call, call.text("title"), text, channel)}


@method("conversations.canvases.create", "canvases:write")
def create_in_channel(call: SlackCall) -> Answer:
    text = _markdown(call.structure("document_content", "invalid_arguments"), needed=False)
    return {"canvas_id": _insert(call, call.text("title"), text, _channel_canvas(call))}


@method("canvases.delete", "canvases:write")
def delete(call: SlackCall) -> Answer:
    row = _find(call, "owner")
    call.store.delete("canvases", id=row["id"])
    call.store.delete("shared_access", item=row["id"])
    return {}


@method("canvases.getContent", "canvases:read")
def get_content(call: SlackCall) -> Answer:
    row = _find(call)
    if call.text("content_type", "markdown") not in ("markdown", ""):
        raise bad_arguments("content_type must be markdown")
    text = "\n\n".join(one["markdown"] for one in json.loads(row["sections"]))
    return {"canvas_id": row["id"], "title": row["title"], "content": text, "content_type": "markdown"}


@method("canvases.sections.lookup", "canvases:read")
def lookup(call: SlackCall) -> Answer:
    criteria = call.structure("criteria", "invalid_arguments")
    if not isinstance(criteria, dict) or not criteria.keys() & {"section_types", "contains_text"}:
        raise bad_arguments("criteria must have section_types or contains_text")
    kinds, text = criteria.get("section_types") or [], str(criteria.get("contains_text") or "").lower()
    if not isinstance(kinds, list) or any(kind not in (*_HEADERS, "any_header") for kind in kinds):
        raise bad_arguments("section_types are h1, h2, h3 and any_header")
    starts = tuple(_HEADERS.values() if "any_header" in kinds else [_HEADERS[kind] for kind in kinds])
    found = [
        {"id": one["id"]}
        for one in json.loads(_find(call)["sections"])
        if (not starts or one["markdown"].startswith(starts)) and text in one["markdown"].lower()
    ]
    return {"sections": found}


@method("canvases.edit", "canvases:write")
def edit(call: SlackCall) -> Answer:
    row = _find(call, "write")
    changes = call.structure("changes", "invalid_arguments")
    if not isinstance(changes, list) or not changes or not all(isinstance(one, dict) for one in changes):
        raise bad_arguments("changes must be a list of changes")
    title, sections = row["title"], json.loads(row["sections"])
    for change in changes:
        if change.get("operation") == "rename":
            title = _markdown(change.get("title_content"))
        else:
            sections = _changed(call, sections, change)
    call.store.update("canvases", {"id": row["id"]}, title=title, sections=sections, updated=call.now)
    return {}


def _changed(call: SlackCall, sections: list[Answer], change: Answer) -> list[Answer]:
    what, where = change.get("operation"), change.get("section_id")
    if what not in _PLACES:
        raise bad_arguments(f"operation must be one of {', '.join(_PLACES)}")
    new = [] if what == "delete" else _sections(call, _markdown(change.get("document_content")))
    if what == "insert_at_start":
        return [*new, *sections]
    if what == "insert_at_end":
        return [*sections, *new]
    if what == "replace" and where is None:
        return new
    at = next((n for n, one in enumerate(sections) if one["id"] == where), None)
    if at is None:
        raise SlackError("canvas_editing_failed", detail=f"section_not_found: {str(where)[:100]}")
    start, end = at + (what == "insert_after"), at + (what != "insert_before")
    return [*sections[:start], *new, *sections[end:]]


@method("canvases.access.set", "canvases:write")
def set_access(call: SlackCall) -> Answer:
    give(call, _find(call, "owner")["id"])
    return {}


@method("canvases.access.delete", "canvases:write")
def delete_access(call: SlackCall) -> Answer:
    take_away(call, _find(call, "owner")["id"])
    return {}
