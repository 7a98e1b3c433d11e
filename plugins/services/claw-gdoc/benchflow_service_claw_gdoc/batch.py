"""`documents.batchUpdate`: every request in order on a copy, all of them or none."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from benchflow_claw_kit.errors import ApiError

from benchflow_service_claw_gdoc.model.draft import Draft, Tab
from benchflow_service_claw_gdoc.model.tree import EditError, Element, content_width, paragraphs
from benchflow_service_claw_gdoc.requests import HANDLERS
from benchflow_service_claw_gdoc.requests.comments import COMMENTS
from benchflow_service_claw_gdoc.requests.suggestions import SETTLING, SUGGESTABLE, begin, refresh

__all__ = ["apply_batch"]

MAX_WIDTH = 1_020_000
"""Code units a tab may hold, about what Docs itself allows."""


def apply_batch(
    document: Element,
    requests: list[dict[str, Any]],
    new_id: Callable[[str], str],
    user: str = "",
    now: str = "",
    suggest: bool = False,
) -> tuple[Element, list[dict[str, Any]], list[dict[str, Any]]]:
    """The changed document, one reply per request, empty where the API answers nothing, and what became of suggestions.

    `suggest`: the requests are not done, but suggested.
    """
    draft = Draft(deepcopy(document), new_id, user, now)
    replies, suggested = [], []
    for number, request in enumerate(requests):
        draft.suggestion, draft.settled = "", {}
        created = [begin(draft)] if suggest and SUGGESTABLE & set(request) else []
        replies.append(_apply(draft, number, request, suggest) or {})
        draft.suggestion = ""
        made = refresh(draft, created)
        suggested.append({**draft.settled, **({"createdSuggestionIds": made} if made else {})})
    for tab in draft.tabs():
        if content_width(tab.segment("")) > MAX_WIDTH:
            raise ApiError(400, "The document is too large: at most 1.02 million characters.", "badRequest")
        _settle(tab, new_id)
    return draft.document, replies, suggested


def _apply(draft: Draft, number: int, request: dict[str, Any], suggest: bool) -> dict[str, Any] | None:
    if not request:
        raise ApiError(400, f"Invalid requests[{number}]: No request set.", "badRequest")
    if len(request) > 1:
        second = list(request)[1]
        text = f"oneof field 'request' is already set. Cannot set '{second}'"
        raise ApiError(400, f"Invalid value at 'requests[{number}]' (oneof), {text}", "invalid")
    (name, fields), *_ = request.items()
    if suggest and name not in SUGGESTABLE | COMMENTS | SETTLING:
        raise ApiError(400, f"Invalid requests[{number}].{name}: It cannot be applied as a suggestion.", "badRequest")
    try:
        return HANDLERS[name](draft, fields)
    except EditError as error:
        raise ApiError(400, f"Invalid requests[{number}].{name}: {error}", "badRequest") from None


def _settle(tab: Tab, new_id: Callable[[str], str]) -> None:
    """What follows from the text: ids of headings, numbers of footnotes, and nothing that nobody refers to."""
    objects: set[str] = set()
    notes: list[str] = []
    for segment_id, content in tab.segments():
        for spot in paragraphs(content):
            style = spot.paragraph["paragraphStyle"]
            if style.get("namedStyleType", "").startswith("HEADING") and not style.get("headingId"):
                style["headingId"] = "h." + new_id("heading")
            elif not style.get("headingId"):
                style.pop("headingId", None)
            for inline in spot.paragraph["elements"]:
                if "inlineObjectElement" in inline:
                    objects.add(inline["inlineObjectElement"]["inlineObjectId"])
                elif "footnoteReference" in inline and not segment_id:
                    notes.append(inline["footnoteReference"]["footnoteId"])
                    inline["footnoteReference"]["footnoteNumber"] = str(len(notes))
    for kind, used in (("inlineObjects", objects), ("footnotes", set(notes))):
        for unused in [name for name in tab.data.get(kind, {}) if name not in used]:
            del tab.data[kind][unused]
    tab.drop_empty_ranges()
