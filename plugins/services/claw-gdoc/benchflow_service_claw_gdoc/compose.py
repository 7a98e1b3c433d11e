"""A document from a few plain blocks, as scenario files write them; made with the API's own requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchflow_service_claw_gdoc.batch import apply_batch
from benchflow_service_claw_gdoc.model import utf16
from benchflow_service_claw_gdoc.model.draft import Draft
from benchflow_service_claw_gdoc.model.tree import content_width, tables

__all__ = ["compose"]

Block = str | dict[str, Any]
_KEYS = {"text", "style", "heading", "bold", "italic", "links", "bullets", "numbered", "table", "pageBreak", "name"}


def compose(tabs: list[Any], blocks: Sequence[Block], new_id: Callable[[str], str]) -> list[Any]:
    """`blocks` at the end of the first tab's body. ValueError names what a block should not have."""
    document: dict[str, Any] = {"title": "", "tabs": tabs}
    for number, block in enumerate(blocks):
        if isinstance(block, str):
            block = {"text": block}
        unknown = set(block) - _KEYS
        if unknown:
            raise ValueError(f"block {number}: unknown {', '.join(sorted(unknown))}; known: {', '.join(sorted(_KEYS))}")
        for requests in _steps(document, block):
            document, *_ = apply_batch(document, requests, new_id)
    done: list[Any] = document["tabs"]
    return done


def _end(document: dict[str, Any]) -> int:
    return content_width(Draft(document, str).tabs()[0].segment("")) - 1


def _steps(document: dict[str, Any], block: dict[str, Any]) -> list[list[dict[str, Any]]]:
    at = _end(document)
    if "table" in block:
        return _table(document, block["table"], at)
    if block.get("pageBreak"):
        return [[{"insertPageBreak": {"location": {"index": at}}}]]
    items = block.get("bullets") or block.get("numbered")
    text = "\n".join(items) if items else str(block.get("text", ""))
    span = {"startIndex": at, "endIndex": at + utf16.width(text) + 1}
    requests: list[dict[str, Any]] = [{"insertText": {"location": {"index": at}, "text": text + "\n"}}]
    kind = f"HEADING_{block['heading']}" if "heading" in block else block.get("style")
    if kind:
        named = {"paragraphStyle": {"namedStyleType": kind}, "fields": "namedStyleType", "range": span}
        requests.append({"updateParagraphStyle": named})
    if items:
        preset = "BULLET_DISC_CIRCLE_SQUARE" if "bullets" in block else "NUMBERED_DECIMAL_ALPHA_ROMAN"
        requests.append({"createParagraphBullets": {"range": span, "bulletPreset": preset}})
    if block.get("name"):
        inner = {"startIndex": at, "endIndex": span["endIndex"] - 1}
        requests.append({"createNamedRange": {"name": block["name"], "range": inner}})
    return [requests + _marks(block, text, at)]


def _marks(block: dict[str, Any], text: str, at: int) -> list[dict[str, Any]]:
    """`bold`, `italic`: phrases of the text; `links`: phrase to address."""
    wanted: list[tuple[str, dict[str, Any]]] = [
        (phrase, {kind: True}) for kind in ("bold", "italic") for phrase in block.get(kind, [])
    ]
    wanted += [(phrase, {"link": {"url": url}}) for phrase, url in block.get("links", {}).items()]
    requests = []
    for phrase, style in wanted:
        place = text.find(phrase)
        if place < 0:
            raise ValueError(f"{phrase!r} is not in {text!r}")
        start = at + utf16.width(text[:place])
        span = {"startIndex": start, "endIndex": start + utf16.width(phrase)}
        requests.append({"updateTextStyle": {"range": span, "textStyle": style, "fields": ",".join(style)}})
    return requests


def _table(document: dict[str, Any], rows: list[list[str]], at: int) -> list[list[dict[str, Any]]]:
    columns = max(len(row) for row in rows)
    make = {"insertTable": {"location": {"index": at}, "rows": len(rows), "columns": columns}}
    trial, *_ = apply_batch(document, [make], lambda kind: kind)
    spot = tables(Draft(trial, str).tabs()[0].segment(""))[-1]
    fill = []
    for row_at in reversed(range(len(rows))):
        for column in reversed(range(len(rows[row_at]))):
            index = spot.start + 3 + row_at * (1 + 2 * columns) + 2 * column
            if rows[row_at][column]:
                fill.append({"insertText": {"location": {"index": index}, "text": str(rows[row_at][column])}})
    return [[make, *fill]]
