"""Things in a line of text: page breaks, images, people, links to files, dates."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from benchflow_service_claw_gdoc.model.draft import Draft, DraftPlace, Tab
from benchflow_service_claw_gdoc.model.edit import insert_inlines, must_find
from benchflow_service_claw_gdoc.model.tree import EditError, Element, find_paragraph
from benchflow_service_claw_gdoc.requests.registry import Reply, handles

__all__ = ["put"]

Fields = dict[str, Any]


def put(place: DraftPlace, *inlines: Element) -> None:
    insert_inlines(place.content, place.index, list(inlines))
    place.grew(place.index, len(inlines))


def _in_table(place: DraftPlace) -> bool:
    spot = find_paragraph(place.content, place.index)
    return spot is not None and spot.content is not place.content


@handles("insertPageBreak")
def page_break(draft: Draft, request: Fields) -> Reply:
    """A page break and a newline; in the body only, outside tables."""
    place = draft.insertion(request)
    must_find(place.content, place.index)
    if place.kind != "body" or _in_table(place):
        raise EditError("A page break can only be inserted in the body, outside of tables.")
    place.insert(place.index, "\n")
    put(place, {"pageBreak": {}})
    return None


@handles("insertInlineImage")
def inline_image(draft: Draft, request: Fields) -> Reply:
    place = draft.insertion(request)
    if place.kind == "footnotes":
        raise EditError("An image cannot be inserted in a footnote.")
    must_find(place.content, place.index)
    uri = _checked_uri(request.get("uri", ""))
    object_id = "kix." + draft.new_id("inlineObject")
    size = _size(request.get("objectSize", {}))
    embedded = {
        "imageProperties": {"contentUri": f"https://lh3.googleusercontent.com/docs/{object_id[4:]}", "sourceUri": uri}
        | {"cropProperties": {}},
        "size": size,
        "embeddedObjectBorder": {"propertyState": "NOT_RENDERED", "dashStyle": "SOLID"},
        **{f"margin{side}": {"magnitude": 9, "unit": "PT"} for side in ("Top", "Bottom", "Left", "Right")},
    }
    place.tab.data.setdefault("inlineObjects", {})[object_id] = {
        "objectId": object_id,
        "inlineObjectProperties": {"embeddedObject": embedded},
    }
    put(place, {"inlineObjectElement": {"inlineObjectId": object_id}})
    return {"insertInlineImage": {"objectId": object_id}}


def _checked_uri(uri: str) -> str:
    """Nothing is fetched: an address that could be fetched is enough."""
    if len(uri.encode("utf-8", "replace")) > 2048:
        raise EditError("The URI of the image must be at most 2 kB long.")
    if not re.match(r"https?://[^\s/]+", uri):
        raise EditError("There was a problem retrieving the image. The provided image should be publicly accessible, "
                        "within size limit, and in supported formats.")  # fmt: skip
    return uri


def _size(wanted: Fields) -> Fields:
    """One side given: the picture is taken to be square. None: 72 pixels at 96 per inch are 54 points."""
    sides = {name: wanted.get(name, {}).get("magnitude") for name in ("height", "width")}
    given = [value for value in sides.values() if value]
    usual = given[0] if given else 54
    return {name: {"magnitude": value or usual, "unit": "PT"} for name, value in sides.items()}


@handles("replaceImage")
def replace_image(draft: Draft, request: Fields) -> Reply:
    tab = draft.tab(request.get("tabId"))
    image = _object(tab, request.get("imageObjectId", ""))
    uri = _checked_uri(request.get("uri", ""))
    image["inlineObjectProperties"]["embeddedObject"]["imageProperties"]["sourceUri"] = uri
    return None


def _object(tab: Tab, object_id: str) -> Element:
    found = tab.data.get("inlineObjects", {}).get(object_id)
    if found is None:
        raise EditError(f"The image with object ID {object_id} was not found.")
    image: Element = found
    return image


@handles("deletePositionedObject")
def delete_positioned(draft: Draft, request: Fields) -> Reply:
    tab = draft.tab(request.get("tabId"))
    object_id = request.get("objectId", "")
    if object_id not in tab.data.get("positionedObjects", {}):
        raise EditError(f"The positioned object with object ID {object_id} was not found.")
    del tab.data["positionedObjects"][object_id]
    for _, content in tab.segments():
        for block in content:
            ids = block.get("paragraph", {}).get("positionedObjectIds", [])
            if object_id in ids:
                ids.remove(object_id)
    return None


@handles("insertPerson")
def person(draft: Draft, request: Fields) -> Reply:
    place = draft.insertion(request)
    properties = dict(request.get("personProperties", {}))
    if not properties.get("email"):
        raise EditError("The email address of the person is required.")
    put(place, {"person": {"personId": "kix." + draft.new_id("person"), "personProperties": properties}})
    return None


@handles("insertRichLink")
def rich_link(draft: Draft, request: Fields) -> Reply:
    place = draft.insertion(request)
    given = request.get("richLinkProperties", {})
    if not given.get("uri"):
        raise EditError("The URI of the rich link is required.")
    properties = {"title": given.get("title") or given["uri"], "uri": given["uri"]}
    if given.get("mimeType"):
        properties["mimeType"] = given["mimeType"]
    put(place, {"richLink": {"richLinkId": "kix." + draft.new_id("richLink"), "richLinkProperties": properties}})
    return None


@handles("insertDate")
def date(draft: Draft, request: Fields) -> Reply:
    place = draft.insertion(request)
    properties = dict(request.get("dateElementProperties", {}))
    properties["displayText"] = _shown(properties)
    put(place, {"dateElement": {"dateId": "kix." + draft.new_id("date"), "dateElementProperties": properties}})
    return None


def _shown(properties: Fields) -> str:
    try:
        when = datetime.fromisoformat(properties.get("timestamp", "").replace("Z", "+00:00")).astimezone(UTC)
    except (ValueError, OverflowError):
        raise EditError("The timestamp of the date is required, in RFC 3339 form.") from None
    day = {
        "DATE_FORMAT_MONTH_DAY_ABBREVIATED": f"{when:%b} {when.day}",
        "DATE_FORMAT_MONTH_DAY_FULL": f"{when:%B} {when.day}",
        "DATE_FORMAT_ISO8601": f"{when:%Y-%m-%d}",
    }.get(properties.get("dateFormat", ""), f"{when:%b} {when.day}, {when.year}")
    clock = properties.get("timeFormat", "")
    return day + (f", {when:%H:%M}" if clock.startswith("TIME_FORMAT_HOUR") else "")
