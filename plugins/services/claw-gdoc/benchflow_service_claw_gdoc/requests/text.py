"""Text: insert, delete, replace, style, lists, named ranges."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from benchflow_service_claw_gdoc.model import utf16
from benchflow_service_claw_gdoc.model.bullets import add_bullets, remove_bullets
from benchflow_service_claw_gdoc.model.draft import Draft, DraftPlace, Tab
from benchflow_service_claw_gdoc.model.fields import named, update
from benchflow_service_claw_gdoc.model.patterns import safe_pattern
from benchflow_service_claw_gdoc.model.styles import PARAGRAPH_FIELDS, TEXT_FIELDS, style_paragraphs, style_text
from benchflow_service_claw_gdoc.model.suggest import mark_bullets, mark_paragraph_style, mark_text_style
from benchflow_service_claw_gdoc.model.tree import EditError, paragraph_text, paragraphs
from benchflow_service_claw_gdoc.requests.registry import Reply, handles

__all__: list[str] = []

Fields = dict[str, Any]


@handles("insertText")
def insert_text(draft: Draft, request: Fields) -> Reply:
    text = request.get("text", "")
    if not text:
        raise EditError("The text to insert cannot be empty.")
    place = draft.insertion(request)
    place.insert(place.index, text)
    return None


@handles("deleteContentRange")
def delete_content(draft: Draft, request: Fields) -> Reply:
    place = draft.range(request)
    place.delete(place.low, place.high)
    return None


@handles("replaceAllText")
def replace_all(draft: Draft, request: Fields) -> Reply:
    criteria = request.get("containsText") or {}
    wanted = criteria.get("text", "")
    if not wanted:
        raise EditError("The text to match cannot be empty.")
    pattern = safe_pattern(wanted, bool(criteria.get("searchByRegex")), bool(criteria.get("matchCase")))
    changed = 0
    for tab in draft.chosen_tabs(request.get("tabsCriteria")):
        for segment_id, content in tab.segments():
            place = DraftPlace(tab, segment_id, 0, 0)
            for spot in reversed(paragraphs(content)):
                text = paragraph_text(spot.paragraph)
                for match in reversed([m for m in pattern.finditer(text.removesuffix("\n")) if m.group()]):
                    low = spot.start + utf16.width(text[: match.start()])
                    _replace(place, low, match.group(), request.get("replaceText", ""))
                    changed += 1
    return {"replaceAllText": {"occurrencesChanged": changed} if changed else {}}


def _replace(place: DraftPlace, low: int, old: str, new: str) -> None:
    """The new text takes the style of the old text's first character: it goes in behind it."""
    first = utf16.width(old[0])
    count = place.insert(low + first, new) if new else 0
    if len(old) > 1:
        place.delete(low + first + count, low + utf16.width(old) + count)
    place.delete(low, low + first)


@handles("updateTextStyle")
def update_text_style(draft: Draft, request: Fields) -> Reply:
    place = draft.range(request)
    if draft.suggestion:
        style, fields = request.get("textStyle", {}), request.get("fields")
        mark_text_style(place.content, place.low, place.high, style, fields, draft.suggestion)
        return None
    style_text(place.content, place.low, place.high, request.get("textStyle", {}), request.get("fields"))
    return None


@handles("updateParagraphStyle")
def update_paragraph_style(draft: Draft, request: Fields) -> Reply:
    place = draft.range(request)
    if draft.suggestion:
        style, fields = request.get("paragraphStyle", {}), request.get("fields")
        mark_paragraph_style(place.content, place.low, place.high, style, fields, draft.suggestion)
        return None
    style_paragraphs(place.content, place.low, place.high, request.get("paragraphStyle", {}), request.get("fields"))
    return None


@handles("updateNamedStyle")
def update_named_style(draft: Draft, request: Fields) -> Reply:
    given = request.get("namedStyle", {})
    paths = named(request.get("fields"), ("namedStyleType", "textStyle", "paragraphStyle"))
    if "namedStyleType" not in paths or not given.get("namedStyleType"):
        raise EditError("Named style type is required.")
    style = _named_style(draft.tab(request.get("tabId")), given["namedStyleType"])
    for part, known in (("textStyle", TEXT_FIELDS), ("paragraphStyle", PARAGRAPH_FIELDS)):
        below = [path.partition(".")[2] or "*" for path in paths if path.partition(".")[0] == part]
        if below:
            names = named(",".join(below), known, refused=("namedStyleType",) if part == "paragraphStyle" else ())
            update(style[part], given.get(part, {}), names)
    return None


def _named_style(tab: Tab, kind: str) -> Fields:
    for style in tab.data["namedStyles"]["styles"]:
        if style["namedStyleType"] == kind:
            found: Fields = style
            return found
    raise EditError("Named style type is required.")


@handles("createParagraphBullets")
def create_bullets(draft: Draft, request: Fields) -> Reply:
    place = draft.range(request)
    content = deepcopy(place.content) if draft.suggestion else place.content
    removed = add_bullets(
        place.tab.data,
        content,
        place.low,
        place.high,
        request.get("bulletPreset", ""),
        lambda: "kix." + draft.new_id("list"),
    )
    if draft.suggestion:
        mark_bullets(place.content, content, place.low, place.high, draft.suggestion)
        return None
    for index, count in removed:
        place.tab.shrank(place.segment_id, index, index + count)
    return None


@handles("deleteParagraphBullets")
def delete_bullets(draft: Draft, request: Fields) -> Reply:
    place = draft.range(request)
    content = deepcopy(place.content) if draft.suggestion else place.content
    remove_bullets(content, place.low, place.high)
    if draft.suggestion:
        mark_bullets(place.content, content, place.low, place.high, draft.suggestion)
    return None


# -- named ranges


@handles("createNamedRange")
def create_named_range(draft: Draft, request: Fields) -> Reply:
    name = request.get("name", "")
    if not 1 <= utf16.width(name) <= 256:
        raise EditError("The name must be at least 1 character and no more than 256 characters, in UTF-16 code units.")
    place = draft.range(request)
    range_: Fields = {"startIndex": place.low, "endIndex": place.high, "tabId": place.tab.id}
    if place.segment_id:
        range_["segmentId"] = place.segment_id
    range_id = "kix." + draft.new_id("namedRange")
    group = place.tab.data.setdefault("namedRanges", {}).setdefault(name, {"name": name, "namedRanges": []})
    group["namedRanges"].append({"namedRangeId": range_id, "name": name, "ranges": [range_]})
    return {"createNamedRange": {"namedRangeId": range_id}}


def _chosen(draft: Draft, request: Fields, by_name: str) -> list[tuple[Tab, Fields]]:
    name, range_id = request.get(by_name), request.get("namedRangeId")
    if bool(name) == bool(range_id):
        raise EditError(f"Exactly one of {by_name} and namedRangeId must be set.")
    found = [
        (tab, one)
        for tab in draft.chosen_tabs(request.get("tabsCriteria"))
        for group in tab.data.get("namedRanges", {}).values()
        for one in group["namedRanges"]
        if (one["name"] == name if name else one["namedRangeId"] == range_id)
    ]
    if not found and range_id:
        raise EditError(f"Named range with ID {range_id} was not found.")
    return found


@handles("deleteNamedRange")
def delete_named_range(draft: Draft, request: Fields) -> Reply:
    for tab, one in _chosen(draft, request, "name"):
        group = tab.data["namedRanges"][one["name"]]
        group["namedRanges"].remove(one)
        if not group["namedRanges"]:
            del tab.data["namedRanges"][one["name"]]
    return None


@handles("replaceNamedRangeContent")
def replace_named_range(draft: Draft, request: Fields) -> Reply:
    """The first part of the range takes the text, the others go; the name stays on what was put in."""
    found = _chosen(draft, request, "namedRangeName")
    if not found:
        raise EditError(f"Named range with name {request.get('namedRangeName')} was not found.")
    text = request.get("text", "")
    for tab, one in found:
        for number, part in sorted(enumerate(deepcopy(one["ranges"])), key=lambda pair: -pair[1]["startIndex"]):
            place = DraftPlace(tab, part.get("segmentId", ""), part["startIndex"], part["endIndex"])
            if number or not text:
                place.delete(place.low, place.high)
                continue
            count = place.insert(place.low, text)
            place.delete(place.low + count, place.high + count)
            one["ranges"][0] |= {"startIndex": place.low, "endIndex": place.low + count}
    return None
