"""Suggested edits: marks in the text that say what somebody would put in, take out or restyle, and settling them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from benchflow_service_claw_gdoc.model.styles import style_paragraphs, style_text
from benchflow_service_claw_gdoc.model.tree import (
    Content,
    EditError,
    Element,
    cut,
    element_width,
    paragraphs,
    spots,
    tidy,
)

__all__ = [
    "DELETED",
    "INSERTED",
    "all_marked",
    "ids_in",
    "mark",
    "mark_bullets",
    "mark_paragraph_style",
    "mark_text_style",
    "settle",
    "summary",
]

INSERTED, DELETED = "suggestedInsertionIds", "suggestedDeletionIds"
TEXT, PARAGRAPH, BULLET = "suggestedTextStyleChanges", "suggestedParagraphStyleChanges", "suggestedBulletChanges"
Delete = Callable[[int, int], Any]


# -- marking


def _each(content: Content, low: int, high: int, change: Callable[[Element], None]) -> None:
    """Every inline element between two indexes; a run across one of them becomes two."""
    for spot in paragraphs(content, low, high):
        left, rest = cut(spot.paragraph["elements"], low - spot.start)
        middle, right = cut(rest, high - max(spot.start, low))
        middle = deepcopy(middle)
        for inline in middle:
            change(next(iter(inline.values())))
        spot.paragraph["elements"] = tidy([*left, *middle, *right])


def mark(content: Content, low: int, high: int, kind: str, suggestion: str) -> None:
    """`kind`: INSERTED or DELETED. Tables that lie in the range are marked, too."""

    def add(body: Element) -> None:
        if suggestion not in body.setdefault(kind, []):
            body[kind].append(suggestion)

    for spot in spots(content):
        if "table" in spot.block and low <= spot.start and spot.end <= high:
            add(spot.block["table"])
    _each(content, low, high, add)


def all_marked(content: Content, low: int, high: int, own: frozenset[str]) -> bool:
    """Whether the range holds nothing but insertions that the same person suggested."""
    found: list[bool] = []
    _each(deepcopy(content), low, high, lambda body: found.append(bool(own & set(body.get(INSERTED, ())))))
    return bool(found) and all(found)


def mark_text_style(content: Content, low: int, high: int, style: Element, fields: Any, suggestion: str) -> None:
    style_text(deepcopy(content), low, high, style, fields)  # what would be refused is refused now
    change = {"textStyle": _part(style, fields), "textStyleSuggestionState": _state(fields)}
    _each(content, low, high, lambda body: body.setdefault(TEXT, {}).update({suggestion: deepcopy(change)}))


def mark_paragraph_style(content: Content, low: int, high: int, style: Element, fields: Any, suggestion: str) -> None:
    style_paragraphs(deepcopy(content), low, high, style, fields)
    change = {"paragraphStyle": _part(style, fields), "paragraphStyleSuggestionState": _state(fields)}
    for spot in paragraphs(content, low, high):
        spot.paragraph.setdefault(PARAGRAPH, {})[suggestion] = deepcopy(change)


def mark_bullets(content: Content, changed: Content, low: int, high: int, suggestion: str) -> None:
    """`changed`: the same content as it would be."""
    state = {"listIdSuggested": True, "nestingLevelSuggested": True}
    pairs = zip(paragraphs(content, low, high), paragraphs(changed, low, high), strict=False)
    for spot, other in pairs:
        change = {"bullet": deepcopy(other.paragraph.get("bullet", {})), "bulletSuggestionState": state}
        spot.paragraph.setdefault(BULLET, {})[suggestion] = change
        if change["bullet"]:
            style = {name: other.paragraph["paragraphStyle"][name] for name in ("indentFirstLine", "indentStart")}
            indent = {"paragraphStyle": deepcopy(style), "paragraphStyleSuggestionState": _state(",".join(style))}
            spot.paragraph.setdefault(PARAGRAPH, {})[suggestion] = indent


def _names(fields: str) -> list[str]:
    return list(dict.fromkeys(part.strip().partition(".")[0] for part in fields.split(",")))


def _part(style: Element, fields: str) -> Element:
    names = _names(fields)
    return deepcopy({name: value for name, value in style.items() if name in names or "*" in names})


def _state(fields: str) -> Element:
    if "*" in fields:
        raise EditError("A suggestion has to name the fields it changes.")
    shown = {f"{name}Suggested": True for name in _names(fields) if name != "shading"}
    return shown | ({"shadingSuggestionState": {"backgroundColorSuggested": True}} if "shading" in fields else {})


def _fields(state: Element) -> str:
    names = [name.removesuffix("Suggested") for name in state if name.endswith("Suggested")]
    return ",".join([*names, *(["shading"] if "shadingSuggestionState" in state else [])])


# -- finding


def _bodies(content: Content) -> Iterator[tuple[Element, int, int]]:
    """Whatever may be marked as put in or taken out, with its place."""
    for spot in spots(content):
        if "table" in spot.block:
            yield spot.block["table"], spot.start, spot.end
        elif "paragraph" in spot.block:
            index = spot.start
            for inline in spot.paragraph["elements"]:
                begin, index = index, index + element_width(inline)
                yield next(iter(inline.values())), begin, index


def ids_in(content: Content) -> set[str]:
    found: set[str] = set()
    for body, _, _ in _bodies(content):
        found |= {*body.get(INSERTED, ()), *body.get(DELETED, ()), *body.get(TEXT, ())}
    for spot in paragraphs(content):
        found |= {*spot.paragraph.get(PARAGRAPH, ()), *spot.paragraph.get(BULLET, ())}
    return found


def summary(content: Content, suggestion: str) -> str:
    """In the words of the editor's own cards."""
    texts = {INSERTED: "", DELETED: ""}
    formats: dict[str, None] = {}
    for body, _, _ in _bodies(content):
        for kind in texts:
            if suggestion in body.get(kind, ()):
                texts[kind] += body.get("content", "")
        state = body.get(TEXT, {}).get(suggestion, {}).get("textStyleSuggestionState", {})
        formats |= dict.fromkeys(_fields(state).split(",") if state else ())
    for spot in paragraphs(content):
        state = spot.paragraph.get(PARAGRAPH, {}).get(suggestion, {}).get("paragraphStyleSuggestionState", {})
        if suggestion in spot.paragraph.get(BULLET, ()):
            formats["list"] = None
        elif state:
            formats |= dict.fromkeys(_fields(state).split(","))
    put, gone = texts[INSERTED].strip("\n"), texts[DELETED].strip("\n")
    if put and gone:
        return f"Replace: “{gone}” with “{put}”"
    if put or gone:
        return f"Add: “{put}”" if put else f"Delete: “{gone}”"
    return f"Format: {', '.join(formats)}" if formats else ""


# -- settling


def settle(content: Content, suggestion: str, accept: bool, delete: Delete) -> None:
    """Make a suggestion part of the text, or as if it had never been. `delete` takes a range out of the content."""
    _settle_styles(content, suggestion, accept)
    going: list[list[int]] = []
    for body, low, high in _bodies(content):
        for kind, goes in ((INSERTED, not accept), (DELETED, accept)):
            if suggestion in body.get(kind, ()) and goes:
                if going and low <= going[-1][1]:
                    going[-1][1] = max(going[-1][1], high)
                else:
                    going.append([low, high])
    for low, high in reversed(going):
        _take_out(delete, low, high)
    for body, _, _ in _bodies(content):
        for kind in (INSERTED, DELETED):
            _without(body, kind, suggestion)
    for spot in paragraphs(content):
        spot.paragraph["elements"] = tidy(spot.paragraph["elements"])


def _take_out(delete: Delete, low: int, high: int) -> None:
    """The newline at the end of a segment, or before a table, stays where nothing else can hold its place."""
    for end in (high, high - 1):
        if low < end:
            try:
                delete(low, end)
            except EditError:
                continue
            return


def _without(body: Element, kind: str, suggestion: str) -> Any:
    held = body.get(kind)
    if not held or suggestion not in held:
        return None
    found = held.pop(suggestion) if isinstance(held, dict) else held.remove(suggestion)
    if not held:
        del body[kind]
    return found


def _settle_styles(content: Content, suggestion: str, accept: bool) -> None:
    changes = [(low, high, _without(body, TEXT, suggestion)) for body, low, high in _bodies(content)]
    for low, high, change in changes:
        if change and accept:
            style_text(content, low, high, change["textStyle"], _fields(change["textStyleSuggestionState"]))
    for spot in paragraphs(content):
        change = _without(spot.paragraph, PARAGRAPH, suggestion)
        if change and accept:
            fields = _fields(change["paragraphStyleSuggestionState"])
            style_paragraphs(content, spot.start, spot.end, change["paragraphStyle"], fields)
        change = _without(spot.paragraph, BULLET, suggestion)
        if change and accept:
            spot.paragraph.pop("bullet", None)
            if change["bullet"]:
                spot.paragraph["bullet"] = change["bullet"]
