"""Sections, headers, footers, footnotes, and the style of the whole document."""

from __future__ import annotations

from typing import Any

from benchflow_service_claw_gdoc.model.defaults import section_break
from benchflow_service_claw_gdoc.model.draft import Draft, DraftPlace, Tab
from benchflow_service_claw_gdoc.model.edit import must_find, split_paragraph
from benchflow_service_claw_gdoc.model.fields import named, update
from benchflow_service_claw_gdoc.model.tree import EditError, Element, new_paragraph, width
from benchflow_service_claw_gdoc.requests.objects import put
from benchflow_service_claw_gdoc.requests.registry import Reply, handles

__all__: list[str] = []

Fields = dict[str, Any]
_IDS = tuple(f"{which}{part}Id" for part in ("Header", "Footer") for which in ("default", "firstPage", "evenPage"))
DOCUMENT_FIELDS = (
    "background",
    "documentFormat",
    "flipPageOrientation",
    "marginBottom",
    "marginFooter",
    "marginHeader",
    "marginLeft",
    "marginRight",
    "marginTop",
    "pageNumberStart",
    "pageSize",
    "useEvenPageHeaderFooter",
    "useFirstPageHeaderFooter",
    "useCustomHeaderFooterMargins",
    *_IDS,
)
SECTION_FIELDS = (
    "columnProperties",
    "columnSeparatorStyle",
    "contentDirection",
    "flipPageOrientation",
    "marginBottom",
    "marginFooter",
    "marginHeader",
    "marginLeft",
    "marginRight",
    "marginTop",
    "pageNumberStart",
    "sectionType",
    "useFirstPageHeaderFooter",
    *_IDS,
)


@handles("insertSectionBreak")
def insert_section_break(draft: Draft, request: Fields) -> Reply:
    place = draft.insertion(request)
    kind = request.get("sectionType", "")
    if kind not in ("CONTINUOUS", "NEXT_PAGE"):
        raise EditError("The section type is required.")
    spot = must_find(place.content, place.index)
    if place.kind != "body" or spot.content is not place.content:
        raise EditError("A section break can only be inserted in the body, outside of tables.")
    content, at = split_paragraph(place.content, place.index)
    content.insert(at, section_break(kind))
    place.tab.grew("", place.index, 2)
    return None


@handles("updateSectionStyle")
def update_section_style(draft: Draft, request: Fields) -> Reply:
    place = draft.range(request)
    if place.segment_id:
        raise EditError("Sections are in the body only: the segment ID must be empty.")
    paths = named(request.get("fields"), SECTION_FIELDS, refused=("sectionType", *_IDS))
    for section in _sections(place):
        update(section["sectionStyle"], request.get("sectionStyle", {}), paths)
    return None


def _sections(place: DraftPlace) -> list[Element]:
    """Those whose text overlaps the range; a section begins with its break."""
    starts = []
    index = 0
    for block in place.content:
        if "sectionBreak" in block:
            starts.append((index, block["sectionBreak"]))
        index += width(block)
    ends = [start for start, _ in starts[1:]] + [index]
    return [s for (start, s), end in zip(starts, ends, strict=True) if start < place.high and end > place.low]


@handles("updateDocumentStyle")
def update_document_style(draft: Draft, request: Fields) -> Reply:
    paths = named(request.get("fields"), DOCUMENT_FIELDS, refused=("useCustomHeaderFooterMargins", *_IDS))
    style = request.get("documentStyle", {})
    if "background" in paths and "background" in style and not style["background"].get("color", {}).get("color"):
        raise EditError("Cannot set a transparent background.")
    update(draft.tab(request.get("tabId")).data["documentStyle"], style, paths)
    return None


def _section_at(tab: Tab, location: Fields) -> Element:
    index = 0
    for block in tab.segment(""):
        if "sectionBreak" in block and index == location.get("index", 0):
            found: Element = block["sectionBreak"]["sectionStyle"]
            return found
        index += width(block)
    raise EditError(f"No section break was found at index {location.get('index', 0)}.")


def _create(draft: Draft, request: Fields, part: str) -> str:
    """In the section at the location, or in the document's style, which the first section shows."""
    if request.get("type") != "DEFAULT":
        raise EditError(f"{part} type not specified.")
    location = request.get("sectionBreakLocation")
    tab = draft.tab((location or {}).get("tabId"))
    style = tab.data["documentStyle"]
    if location and location.get("index", 0):
        style = _section_at(tab, location)
    name = f"default{part}Id"
    if style.get(name):
        raise EditError(f"Default {part.lower()} already exists. {part} ID: {style[name]}.")
    segment_id = "kix." + draft.new_id(part.lower())
    style[name] = segment_id
    tab.data.setdefault(f"{part.lower()}s", {})[segment_id] = {
        f"{part.lower()}Id": segment_id,
        "content": [new_paragraph()],
    }
    return segment_id


@handles("createHeader")
def create_header(draft: Draft, request: Fields) -> Reply:
    return {"createHeader": {"headerId": _create(draft, request, "Header")}}


@handles("createFooter")
def create_footer(draft: Draft, request: Fields) -> Reply:
    return {"createFooter": {"footerId": _create(draft, request, "Footer")}}


def _remove(draft: Draft, request: Fields, part: str) -> None:
    tab = draft.tab(request.get("tabId"))
    segment_id = request.get(f"{part}Id", "")
    if segment_id not in tab.data.get(f"{part}s", {}):
        raise EditError(f"{part.capitalize()} with ID {segment_id} was not found.")
    del tab.data[f"{part}s"][segment_id]
    styles = [tab.data["documentStyle"]]
    styles += [b["sectionBreak"]["sectionStyle"] for b in tab.segment("") if "sectionBreak" in b]
    for style in styles:
        for name in [name for name in _IDS if style.get(name) == segment_id]:
            del style[name]
    for one in list(tab.ranges(segment_id)):
        one["endIndex"] = one["startIndex"]


@handles("deleteHeader")
def delete_header(draft: Draft, request: Fields) -> Reply:
    _remove(draft, request, "header")
    return None


@handles("deleteFooter")
def delete_footer(draft: Draft, request: Fields) -> Reply:
    _remove(draft, request, "footer")
    return None


@handles("createFootnote")
def create_footnote(draft: Draft, request: Fields) -> Reply:
    place = draft.insertion(request)
    must_find(place.content, place.index)
    if place.kind != "body":
        raise EditError("A footnote can only be created in the body.")
    footnote_id = "kix." + draft.new_id("footnote")
    put(place, {"footnoteReference": {"footnoteId": footnote_id, "footnoteNumber": ""}})
    note = new_paragraph(" \n")
    place.tab.data.setdefault("footnotes", {})[footnote_id] = {"footnoteId": footnote_id, "content": [note]}
    return {"createFootnote": {"footnoteId": footnote_id}}
