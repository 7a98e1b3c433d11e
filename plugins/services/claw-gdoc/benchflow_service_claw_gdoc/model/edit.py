"""The two edits everything is made of: putting text in, taking a range out."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from benchflow_service_claw_gdoc.model import utf16
from benchflow_service_claw_gdoc.model.tree import (
    Content,
    EditError,
    Element,
    Spot,
    cells,
    content_width,
    cut,
    find_paragraph,
    tidy,
    width,
)

__all__ = ["LINK_COLOR", "delete_range", "insert_inlines", "insert_text", "must_find", "split_paragraph"]

LINK_COLOR = {"color": {"rgbColor": {"red": 0.06666667, "green": 0.33333334, "blue": 0.8}}}
_BAD_RANGE = "Invalid deletion range. Cannot delete the requested range."


def must_find(content: Content, index: int) -> Spot:
    """The paragraph at an index where something is to be put."""
    end = content_width(content)
    if index >= end:
        raise EditError(f"Index {index} must be less than the end index of the referenced segment, {end}.")
    spot = find_paragraph(content, index)
    if spot is None:
        raise EditError(
            "The insertion index must be inside the bounds of an existing paragraph. You can still create new "
            "paragraphs by inserting newlines."
        )
    return spot


def _style_at(left: Content, right: Content) -> Element:
    """Text takes the style of what stands before it, without a link it merely touches."""
    source = left[-1] if left else right[0]
    kind = next(iter(source))
    style = deepcopy(source[kind].get("textStyle", {})) if isinstance(source[kind], dict) else {}
    if "link" in style:
        after = right[0].get("textRun", {}).get("textStyle", {}) if right else {}
        if not left or after.get("link") != style["link"]:
            del style["link"]
            style.pop("underline", None)
            if style.get("foregroundColor") == LINK_COLOR:
                del style["foregroundColor"]
    return style


def insert_text(content: Content, index: int, text: str) -> int:
    """Returns how many code units went in."""
    spot = must_find(content, index)
    text = utf16.clean(text)
    if not text:
        return 0
    left, right = cut(spot.paragraph["elements"], index - spot.start)
    style = _style_at(left, right)
    lines = text.split("\n")
    new: Content = []
    for number, line in enumerate(lines):
        first, last = number == 0, number == len(lines) - 1
        run = {"textRun": {"content": line if last else line + "\n", "textStyle": deepcopy(style)}}
        paragraph = spot.paragraph if first else {k: deepcopy(v) for k, v in spot.paragraph.items() if k != "elements"}
        elements = [*(left if first else []), run, *(right if last else [])]
        if not first:
            paragraph.pop("positionedObjectIds", None)
            if "headingId" in paragraph["paragraphStyle"]:
                paragraph["paragraphStyle"]["headingId"] = ""
        new.append({"paragraph": {**paragraph, "elements": tidy(elements)}})
    spot.content[spot.at : spot.at + 1] = new
    return utf16.width(text)


def insert_inlines(content: Content, index: int, inlines: list[Element]) -> None:
    spot = must_find(content, index)
    left, right = cut(spot.paragraph["elements"], index - spot.start)
    style = _style_at(left, right)
    for inline in inlines:
        next(iter(inline.values())).setdefault("textStyle", deepcopy(style))
    spot.paragraph["elements"] = tidy([*left, *inlines, *right])


def split_paragraph(content: Content, index: int) -> tuple[Content, int]:
    """A newline at `index`; returns the content it is in and the place between the two halves."""
    spot = must_find(content, index)
    insert_text(content, index, "\n")
    return spot.content, spot.at + 1


def delete_range(content: Content, low: int, high: int) -> Content:
    """Takes [low, high) out; returns the blocks and inline elements that went."""
    end = content_width(content)
    if high > end:
        raise EditError(f"Index {high - 1} must be less than the end index of the referenced segment, {end}.")
    if low >= high:
        raise EditError("The range should not be empty.")
    if high == end:
        raise EditError("The range cannot include the newline character at the end of the segment.")
    return _delete(content, 0, low, high)


def _delete(content: Content, start: int, low: int, high: int) -> Content:
    inner = _cell_around(content, start, low, high)
    if inner is not None:
        return _delete(*inner, low, high)
    if high >= start + content_width(content):
        raise EditError(_BAD_RANGE)
    kept, gone, carried, style = _keep(content, start, low, high)
    if carried is None:
        content[:] = kept
        return gone
    after = carried["at"]
    if after >= len(kept) or "paragraph" not in kept[after]:
        raise EditError(_BAD_RANGE)
    target = kept[after]["paragraph"]
    if carried["elements"]:
        target = {**style, "elements": target["elements"]}
    kept[after] = {"paragraph": {**target, "elements": tidy([*carried["elements"], *target["elements"]])}}
    content[:] = kept
    return gone


def _keep(content: Content, start: int, low: int, high: int) -> tuple[Content, Content, dict[str, Any] | None, Element]:
    """What stays, what goes, and the half paragraph whose newline went: it joins the one that follows."""
    kept: Content = []
    gone: Content = []
    carried: dict[str, Any] | None = None
    style: Element = {}
    index = start
    for block in content:
        begin, index = index, index + width(block)
        if index <= low or begin >= high:
            kept.append(block)
            continue
        if "paragraph" not in block:
            if begin < low or index > high or ("sectionBreak" in block and begin == 0):
                raise EditError(_BAD_RANGE)
            gone.append(block)
            continue
        elements = block["paragraph"]["elements"]
        left, rest = cut(elements, low - begin)
        middle, right = cut(rest, high - max(begin, low))
        gone.extend(middle)
        if right:
            kept.append({"paragraph": {**block["paragraph"], "elements": tidy([*left, *right])}})
        elif carried is None:
            carried = {"elements": left, "at": len(kept)}
            style = block["paragraph"]
    return kept, gone, carried, style


def _cell_around(content: Content, start: int, low: int, high: int) -> tuple[Content, int] | None:
    index = start
    for block in content:
        begin, index = index, index + width(block)
        if "table" not in block or not (begin < low and high < index):
            continue
        for _, _, cell, cell_start in cells(block, begin):
            inside = cell_start + 1
            if inside <= low and high <= inside + content_width(cell["content"]):
                return cell["content"], inside
    return None
