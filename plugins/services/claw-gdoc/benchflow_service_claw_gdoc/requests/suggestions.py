"""Suggestions: their threads, and accepting, rejecting and deleting them."""

from __future__ import annotations

import html
from copy import deepcopy
from typing import Any

from benchflow_claw_kit.errors import ApiError

from benchflow_service_claw_gdoc.model.draft import Draft, DraftPlace, Tab
from benchflow_service_claw_gdoc.model.suggest import ids_in, settle, summary
from benchflow_service_claw_gdoc.model.tree import EditError, Element
from benchflow_service_claw_gdoc.requests.comments import new_post, shown_thread
from benchflow_service_claw_gdoc.requests.registry import Reply, handles

__all__ = ["SETTLING", "SUGGESTABLE", "begin", "previewed", "refresh", "shown_suggestions"]

Fields = dict[str, Any]
SETTLING = frozenset({"acceptSuggestion", "rejectSuggestion", "deleteSuggestion"})
SUGGESTABLE = frozenset(
    {
        "insertText",
        "deleteContentRange",
        "replaceAllText",
        "replaceNamedRangeContent",
        "updateTextStyle",
        "updateParagraphStyle",
        "createParagraphBullets",
        "deleteParagraphBullets",
        "insertPageBreak",
        "insertInlineImage",
        "insertPerson",
        "insertRichLink",
        "insertDate",
        "insertTable",
    }
)
"""What can be done as a suggestion."""
_STATUS = {"ACCEPT": "ACCEPTED", "REJECT": "REJECTED"}


def begin(draft: Draft) -> str:
    """What the next request does is a suggestion from now on; returns its id."""
    draft.suggestion = "suggest." + draft.new_id("suggestion")
    draft.own = frozenset(t["suggestionId"] for t in draft.suggestions if t["headPost"].get("user") == draft.user)
    return draft.suggestion


def _marked(tabs: list[Tab]) -> set[str]:
    return {one for tab in tabs for _, content in tab.segments() for one in ids_in(content)}


def refresh(draft: Draft, created: list[str]) -> list[str]:
    """Threads for what was suggested, none for what is gone from the text; returns the created ones that are there."""
    if not created and not draft.suggestions:
        return []
    there = _marked(draft.tabs())
    made = [one for one in created if one in there]
    head = {"suggestionAction": "NO_SUGGESTION_ACTION_CHANGE"}
    for one in made:
        thread: Element = {"suggestionId": one, "headPost": _post(draft, head), "replies": [], "status": "OPEN"}
        draft.suggestions.append(thread)
    kept = [t for t in draft.suggestions if t["status"] != "OPEN" or t["suggestionId"] in there]
    draft.suggestions[:] = kept
    for thread in kept:
        if thread["status"] == "OPEN":
            texts = [summary(c, thread["suggestionId"]) for tab in draft.tabs() for _, c in tab.segments()]
            thread["summaryText"] = "\n".join(filter(None, texts))
            thread["summaryHtml"] = html.escape(thread["summaryText"], quote=False).replace("\n", "<br>")
    return made


def _post(draft: Draft, more: Element) -> Element:
    post = new_post(draft, "")
    del post["commentAction"]
    return post | more


def _open(draft: Draft, request: Fields) -> Element:
    wanted = request.get("suggestionId", "")
    for thread in draft.suggestions:
        if thread["suggestionId"] == wanted and thread["status"] == "OPEN":
            return thread
    raise EditError(f"Suggestion with ID {wanted} was not found.")


def _may(allowed: bool) -> None:
    if not allowed:
        raise ApiError(403, "The caller does not have permission", "forbidden")


def _settle(draft: Draft, suggestion: str, accept: bool) -> None:
    draft.suggestion = ""
    for tab in draft.tabs():
        for segment_id, content in list(tab.segments()):
            settle(content, suggestion, accept, DraftPlace(tab, segment_id, 0, 0).delete)


def _close(draft: Draft, thread: Element, action: str) -> Reply:
    suggestion, status = thread["suggestionId"], _STATUS[action]
    _settle(draft, suggestion, action == "ACCEPT")
    thread["status"] = status
    thread["replies"].append(_post(draft, {"suggestionAction": action}))
    draft.settled[f"{status.lower()}SuggestionIds"] = [suggestion]
    return None


@handles("acceptSuggestion")
def accept(draft: Draft, request: Fields) -> Reply:
    thread = _open(draft, request)
    _may(draft.editor)
    return _close(draft, thread, "ACCEPT")


@handles("rejectSuggestion")
def reject(draft: Draft, request: Fields) -> Reply:
    thread = _open(draft, request)
    _may(draft.editor or thread["headPost"].get("user") == draft.user)
    return _close(draft, thread, "REJECT")


@handles("deleteSuggestion")
def delete(draft: Draft, request: Fields) -> Reply:
    """As if it had never been made."""
    thread = _open(draft, request)
    _may(thread["headPost"].get("user") == draft.user)
    _settle(draft, thread["suggestionId"], False)
    draft.suggestions.remove(thread)
    draft.settled["deletedSuggestionIds"] = [thread["suggestionId"]]
    return None


def previewed(document: Element, accept: bool) -> Element:
    """The document with every suggestion settled."""
    draft = Draft(deepcopy(document), lambda kind: kind)
    for suggestion in sorted(_marked(draft.tabs())):
        _settle(draft, suggestion, accept)
    return draft.document


def shown_suggestions(document: Element, user: str) -> list[Element]:
    return [shown_thread(thread, user) for thread in document.get("suggestions", [])]
