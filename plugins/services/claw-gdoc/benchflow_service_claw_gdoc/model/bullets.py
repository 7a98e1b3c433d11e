"""Lists: paragraphs with a bullet, and the definition of the list they belong to."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from benchflow_service_claw_gdoc.model.tree import Content, EditError, Element, Spot, cut, paragraphs, tidy

__all__ = ["add_bullets", "remove_bullets"]

_SYMBOLS = {
    "BULLET_DISC_CIRCLE_SQUARE": "●○■",
    "BULLET_DIAMONDX_ARROW3D_SQUARE": "❖➢■",
    "BULLET_CHECKBOX": "",
    "BULLET_ARROW_DIAMOND_DISC": "➔◆●",
    "BULLET_STAR_CIRCLE_SQUARE": "★○■",
    "BULLET_ARROW3D_CIRCLE_SQUARE": "➢○■",
    "BULLET_LEFTTRIANGLE_DIAMOND_DISC": "◀◆●",
    "BULLET_DIAMONDX_HOLLOWDIAMOND_SQUARE": "❖◇■",
    "BULLET_DIAMOND_CIRCLE_SQUARE": "◆○■",
}
_NUMBERS = {
    "NUMBERED_DECIMAL_ALPHA_ROMAN": ("DECIMAL", "ALPHA", "ROMAN"),
    "NUMBERED_DECIMAL_ALPHA_ROMAN_PARENS": ("DECIMAL", "ALPHA", "ROMAN"),
    "NUMBERED_DECIMAL_NESTED": ("DECIMAL", "DECIMAL", "DECIMAL"),
    "NUMBERED_UPPERALPHA_ALPHA_ROMAN": ("UPPER_ALPHA", "ALPHA", "ROMAN"),
    "NUMBERED_UPPERROMAN_UPPERALPHA_DECIMAL": ("UPPER_ROMAN", "UPPER_ALPHA", "DECIMAL"),
    "NUMBERED_ZERODECIMAL_ALPHA_ROMAN": ("ZERO_DECIMAL", "ALPHA", "ROMAN"),
}
_LEVELS = 9


def _points(value: float) -> dict[str, Any]:
    return {"magnitude": value, "unit": "PT"}


def _level(preset: str, number: int) -> Element:
    level: Element = {
        "bulletAlignment": "START",
        "indentFirstLine": _points(18 + 36 * number),
        "indentStart": _points(36 + 36 * number),
        "textStyle": {},
        "startNumber": 1,
    }
    if preset in _NUMBERS:
        tail = ")" if preset.endswith("PARENS") else "."
        nested = preset == "NUMBERED_DECIMAL_NESTED"
        shown = "".join(f"%{n}{tail}" for n in range(number + 1)) if nested else f"%{number}{tail}"
        level |= {"glyphType": _NUMBERS[preset][number % 3], "glyphFormat": shown}
    elif _SYMBOLS[preset]:
        level |= {"glyphSymbol": _SYMBOLS[preset][number % 3], "glyphFormat": f"%{number}"}
    else:
        level |= {"glyphType": "GLYPH_TYPE_UNSPECIFIED", "glyphFormat": f"%{number}"}
    return level


def add_bullets(
    tab: Element, content: Content, low: int, high: int, preset: str, new_id: Callable[[], str]
) -> list[tuple[int, int]]:
    """Leading tabs become depth and go; returns (index, count) of what went, the last one first."""
    if preset not in _SYMBOLS and preset not in _NUMBERS:
        raise EditError("The bullet preset is required.")
    levels = [_level(preset, number) for number in range(_LEVELS)]
    chosen = paragraphs(content, low, high)
    if not chosen:
        return []
    list_id = _before(tab, chosen[0], levels)
    if list_id is None:
        list_id = new_id()
        tab.setdefault("lists", {})[list_id] = {"listProperties": {"nestingLevels": levels}}
    removed = []
    for spot in reversed(chosen):
        count = _leading_tabs(spot.paragraph)
        depth = min(count, _LEVELS - 1)
        bullet: Element = {"listId": list_id, "textStyle": {}}
        if depth:
            bullet["nestingLevel"] = depth
        if count:
            spot.paragraph["elements"] = tidy(cut(spot.paragraph["elements"], count)[1])
            removed.append((spot.start, count))
        spot.paragraph["bullet"] = bullet
        style = spot.paragraph["paragraphStyle"]
        style["indentFirstLine"] = deepcopy(levels[depth]["indentFirstLine"])
        style["indentStart"] = deepcopy(levels[depth]["indentStart"])
    return removed


def _before(tab: Element, first: Spot, levels: list[Element]) -> str | None:
    """The list of the paragraph just above, if it looks the same."""
    above = first.content[first.at - 1] if first.at else {}
    list_id = above.get("paragraph", {}).get("bullet", {}).get("listId")
    known = tab.get("lists", {}).get(list_id)
    return list_id if known and known["listProperties"]["nestingLevels"] == levels else None


def _leading_tabs(paragraph: Element) -> int:
    text = ""
    for inline in paragraph["elements"]:
        if "textRun" not in inline:
            break
        text += inline["textRun"]["content"]
    return len(text) - len(text.lstrip("\t"))


def remove_bullets(content: Content, low: int, high: int) -> None:
    """The indent stays, so that the depth can still be seen."""
    for spot in paragraphs(content, low, high):
        spot.paragraph.pop("bullet", None)
