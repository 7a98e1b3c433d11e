"""Text and paragraph styles."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from benchflow_service_claw_gdoc.model.edit import LINK_COLOR
from benchflow_service_claw_gdoc.model.fields import named, update
from benchflow_service_claw_gdoc.model.tree import Content, EditError, Element, cut, paragraphs, tidy

__all__ = ["PARAGRAPH_FIELDS", "TEXT_FIELDS", "style_paragraphs", "style_text"]

TEXT_FIELDS = (
    "bold",
    "italic",
    "underline",
    "strikethrough",
    "smallCaps",
    "backgroundColor",
    "foregroundColor",
    "fontSize",
    "weightedFontFamily",
    "baselineOffset",
    "link",
)
PARAGRAPH_FIELDS = (
    "namedStyleType",
    "alignment",
    "lineSpacing",
    "direction",
    "spacingMode",
    "spaceAbove",
    "spaceBelow",
    "borderBetween",
    "borderTop",
    "borderBottom",
    "borderLeft",
    "borderRight",
    "indentFirstLine",
    "indentStart",
    "indentEnd",
    "keepLinesTogether",
    "keepWithNext",
    "avoidWidowAndOrphan",
    "shading",
    "pageBreakBefore",
)


def style_text(content: Content, low: int, high: int, style: Element, fields: Any) -> None:
    paths = named(fields, TEXT_FIELDS)
    _check(style)

    def restyle(text_style: Element) -> None:
        had = text_style.get("link")
        update(text_style, style, paths)
        _link_look(text_style, had, paths)

    for spot in paragraphs(content, low, high):
        paragraph = spot.paragraph
        left, rest = cut(paragraph["elements"], low - spot.start)
        middle, right = cut(rest, high - max(spot.start, low))
        middle = [_restyled(inline, restyle) for inline in middle]
        paragraph["elements"] = tidy([*left, *middle, *right])
        if not right and "bullet" in paragraph:
            restyle(paragraph["bullet"].setdefault("textStyle", {}))


def _restyled(inline: Element, restyle: Callable[[Element], None]) -> Element:
    inline = deepcopy(inline)
    body = next(iter(inline.values()))
    restyle(body.setdefault("textStyle", {}))
    return inline


def _check(style: Element) -> None:
    size = style.get("fontSize", {}).get("magnitude")
    if size is not None and not 0 <= size <= 400:
        raise EditError("Font size must be between 0 and 400 points.")
    font = style.get("weightedFontFamily")
    if font is not None:
        if not font.get("fontFamily"):
            raise EditError("The font family is required when a weighted font family is set.")
        weight = font.get("weight", 400)
        if weight % 100 or not 100 <= weight <= 900:
            raise EditError("The font weight must be a multiple of 100 between 100 and 900, inclusive.")
    link = style.get("link")
    if link is not None and len(link) != 1:
        raise EditError("A link must have exactly one destination.")


def _link_look(style: Element, had: Any, paths: list[str]) -> None:
    """A new link is blue and underlined; one that is taken away loses that look again."""
    if "link" not in paths or style.get("link") == had:
        return
    if "link" in style:
        if "underline" not in paths:
            style["underline"] = True
        if "foregroundColor" not in paths:
            style["foregroundColor"] = deepcopy(LINK_COLOR)
        return
    if "underline" not in paths:
        style.pop("underline", None)
    if style.get("foregroundColor") == LINK_COLOR and "foregroundColor" not in paths:
        del style["foregroundColor"]


def style_paragraphs(content: Content, low: int, high: int, style: Element, fields: Any) -> None:
    paths = named(fields, (*PARAGRAPH_FIELDS, "headingId", "tabStops"), refused=("headingId", "tabStops"))
    for spot in paragraphs(content, low, high):
        own = spot.paragraph["paragraphStyle"]
        before = own.get("namedStyleType")
        update(own, style, paths)
        kind = own.setdefault("namedStyleType", "NORMAL_TEXT")
        if "namedStyleType" in paths and (not kind.startswith("HEADING") or before != kind):
            own.pop("headingId", None)
