"""Walking a segment: how wide an element is, which paragraph holds an index."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from benchflow_service_claw_gdoc.model import utf16

__all__ = [
    "Content",
    "EditError",
    "Element",
    "Spot",
    "content_width",
    "cut",
    "element_width",
    "find_paragraph",
    "new_paragraph",
    "paragraph_text",
    "paragraphs",
    "plain_text",
    "tables",
    "text_between",
    "tidy",
    "width",
]

Element = dict[str, Any]
Content = list[Element]
"""The structural elements of a body, a header, a footer, a footnote or a table cell."""


class EditError(Exception):
    """A request that cannot be applied; the text goes to the client after the request's name."""


def element_width(inline: Element) -> int:
    return utf16.width(inline["textRun"]["content"]) if "textRun" in inline else 1


def width(block: Element) -> int:
    if "paragraph" in block:
        return sum(element_width(inline) for inline in block["paragraph"]["elements"])
    if "table" in block:
        rows = block["table"]["tableRows"]
        return 2 + sum(1 + sum(1 + content_width(c["content"]) for c in row["tableCells"]) for row in rows)
    return 1


def content_width(content: Content) -> int:
    return sum(width(block) for block in content)


@dataclass(slots=True)
class Spot:
    """A block where it stands: in which content, at which place, from which index."""

    content: Content
    at: int
    start: int

    @property
    def block(self) -> Element:
        return self.content[self.at]

    @property
    def paragraph(self) -> Element:
        found: Element = self.content[self.at]["paragraph"]
        return found

    @property
    def end(self) -> int:
        return self.start + width(self.block)


def spots(content: Content, start: int = 0) -> Iterator[Spot]:
    """Every block, the cells' ones after their table."""
    index = start
    for at, block in enumerate(content):
        yield Spot(content, at, index)
        if "table" in block:
            for _, _, cell, cell_start in cells(block, index):
                yield from spots(cell["content"], cell_start + 1)
        index += width(block)


def cells(block: Element, start: int) -> Iterator[tuple[int, int, Element, int]]:
    """Row, column, cell, and the index at which the cell begins (its content one later)."""
    index = start + 1
    for row_at, row in enumerate(block["table"]["tableRows"]):
        index += 1
        for column, cell in enumerate(row["tableCells"]):
            yield row_at, column, cell, index
            index += 1 + content_width(cell["content"])


def paragraphs(content: Content, low: int = 0, high: int | None = None) -> list[Spot]:
    """Those that overlap [low, high), in cells too."""
    found = [spot for spot in spots(content) if "paragraph" in spot.block]
    if high is None:
        return found
    return [spot for spot in found if spot.start < high and spot.end > low]


def tables(content: Content) -> list[Spot]:
    return [spot for spot in spots(content) if "table" in spot.block]


def find_paragraph(content: Content, index: int) -> Spot | None:
    for spot in spots(content):
        if "paragraph" in spot.block and spot.start <= index < spot.end:
            return spot
    return None


def cut(elements: Content, offset: int) -> tuple[Content, Content]:
    """The inline elements before and from `offset`; a run across it becomes two."""
    left: Content = []
    for number, inline in enumerate(elements):
        size = element_width(inline)
        if offset <= 0:
            return left, elements[number:]
        if offset < size:
            run = inline["textRun"]
            try:
                before, after = utf16.split(run["content"], offset)
            except ValueError:
                raise EditError("The index cannot be inside a surrogate pair.") from None
            left.append({**inline, "textRun": {**run, "content": before}})
            rest = {**inline, "textRun": {**deepcopy(run), "content": after}}
            return left, [rest, *elements[number + 1 :]]
        left.append(inline)
        offset -= size
    return left, []


def tidy(elements: Content) -> Content:
    """Neighbouring runs of one style are one run; empty ones go."""
    result: Content = []
    for inline in elements:
        run = inline.get("textRun")
        if run is not None and not run["content"]:
            continue
        last = result[-1].get("textRun") if result else None
        if run is not None and last is not None and {**last, "content": ""} == {**run, "content": ""}:
            result[-1] = {"textRun": {**last, "content": last["content"] + run["content"]}}
        else:
            result.append(inline)
    return result


def new_paragraph(text: str = "\n", style: Element | None = None) -> Element:
    return {
        "paragraph": {
            "elements": [{"textRun": {"content": text, "textStyle": {}}}],
            "paragraphStyle": style or {"namedStyleType": "NORMAL_TEXT", "direction": "LEFT_TO_RIGHT"},
        }
    }


def plain_text(content: Content) -> str:
    """What a reader sees: text, cells after each other with tabs, one object character per object."""
    parts = []
    for block in content:
        if "paragraph" in block:
            parts.append(paragraph_text(block["paragraph"], ""))
        elif "table" in block:
            for row in block["table"]["tableRows"]:
                parts.append("\t".join(plain_text(cell["content"]).rstrip("\n") for cell in row["tableCells"]) + "\n")
    return "".join(parts)


def paragraph_text(paragraph: Element, instead: str = "\ufffc") -> str:
    """With one character in place of each object, so that places in the text are places in the paragraph."""
    parts = []
    for inline in paragraph["elements"]:
        parts.append(inline["textRun"]["content"] if "textRun" in inline else instead or _shown(inline))
    return "".join(parts)


def _shown(inline: Element) -> str:
    for kind in ("person", "richLink", "dateElement", "dropdown"):
        properties = inline.get(kind, {}).get(f"{kind}Properties", {})
        text = (
            properties.get("title")
            or properties.get("name")
            or properties.get("email")
            or properties.get("displayText")
            or properties.get("displayValue")
        )
        if text:
            return str(text)
    return ""


def text_between(content: Content, low: int, high: int) -> str:
    """What stands between two indexes, as plain text; both count UTF-16 code units."""
    parts = []
    for spot in paragraphs(content, low, high):
        units = paragraph_text(spot.paragraph).encode("utf-16-le", "surrogatepass")
        begin, end = max(0, low - spot.start), max(0, high - spot.start)
        parts.append(units[2 * begin : 2 * end].decode("utf-16-le", "replace"))
    return "".join(parts)
