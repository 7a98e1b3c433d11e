"""Tabs of a document."""

from __future__ import annotations

from typing import Any

from benchflow_service_claw_gdoc.model.defaults import new_tab
from benchflow_service_claw_gdoc.model.draft import Draft
from benchflow_service_claw_gdoc.model.fields import named, update
from benchflow_service_claw_gdoc.model.tree import EditError, Element
from benchflow_service_claw_gdoc.requests.registry import Reply, handles

__all__: list[str] = []

Fields = dict[str, Any]
_MAX_DEPTH, _MAX_TABS = 3, 100


def _find(entries: list[Element], tab_id: str, depth: int = 0) -> tuple[list[Element], int, int] | None:
    """The siblings, the place among them, and how deep they stand."""
    for at, entry in enumerate(entries):
        if entry["tabProperties"]["tabId"] == tab_id:
            return entries, at, depth
        below = _find(entry.get("childTabs", []), tab_id, depth + 1)
        if below:
            return below
    return None


def _must_find(draft: Draft, tab_id: str) -> tuple[list[Element], int, int]:
    found = _find(draft.document["tabs"], tab_id)
    if found is None:
        raise EditError(f"Tab with ID {tab_id} was not found.")
    return found


def _siblings(draft: Draft, parent: str | None) -> list[Element]:
    if not parent:
        top: list[Element] = draft.document["tabs"]
        return top
    entries, at, depth = _must_find(draft, parent)
    if depth + 1 >= _MAX_DEPTH:
        raise EditError(f"Tabs can be nested at most {_MAX_DEPTH} levels deep.")
    children: list[Element] = entries[at].setdefault("childTabs", [])
    return children


@handles("addDocumentTab")
def add_tab(draft: Draft, request: Fields) -> Reply:
    given = request.get("tabProperties", {})
    if len(draft.tabs()) >= _MAX_TABS:
        raise EditError(f"A document can have at most {_MAX_TABS} tabs.")
    if given.get("tabId"):
        raise EditError("Unallowed field: tabId")
    siblings = _siblings(draft, given.get("parentTabId"))
    at = given.get("index", len(siblings))
    if not 0 <= at <= len(siblings):
        raise EditError(f"The tab index must be between 0 and {len(siblings)}.")
    title = given.get("title") or f"Tab {len(draft.tabs()) + 1}"
    entry = new_tab("t." + draft.new_id("tab"), title, at)
    if given.get("iconEmoji"):
        entry["tabProperties"]["iconEmoji"] = given["iconEmoji"]
    siblings.insert(at, entry)
    shown = {**entry["tabProperties"]}
    if given.get("parentTabId"):
        shown["parentTabId"] = given["parentTabId"]
    return {"addDocumentTab": {"tabProperties": shown}}


@handles("deleteTab")
def delete_tab(draft: Draft, request: Fields) -> Reply:
    entries, at, depth = _must_find(draft, request.get("tabId", ""))
    if depth == 0 and len(entries) == 1:
        raise EditError("The last tab of a document cannot be deleted.")
    del entries[at]
    return None


@handles("updateDocumentTabProperties")
def update_tab(draft: Draft, request: Fields) -> Reply:
    given = request.get("tabProperties", {})
    paths = named(request.get("fields"), ("title", "index", "iconEmoji", "parentTabId", "tabId", "nestingLevel"))
    entries, at, _ = _must_find(draft, given.get("tabId", ""))
    update(entries[at]["tabProperties"], given, [path for path in paths if path in ("title", "iconEmoji")])
    if not entries[at]["tabProperties"].get("title"):
        raise EditError("The title of a tab cannot be empty.")
    if "index" in paths:
        to = given.get("index", 0)
        if not 0 <= to < len(entries):
            raise EditError(f"The tab index must be between 0 and {len(entries) - 1}.")
        entries.insert(to, entries.pop(at))
    return None
