"""The document as `documents.get` answers it: with indexes, and in the old shape or by tabs."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from benchflow_service_claw_gdoc.model.draft import Draft
from benchflow_service_claw_gdoc.model.tree import Content, Element, element_width, plain_text

__all__ = ["document_text", "indexed", "render"]


def indexed(content: Content, start: int = 0) -> tuple[Content, int]:
    """A copy with startIndex and endIndex; zero is left out, as protocol buffers do."""
    result: Content = []
    for block in content:
        begin = start
        shown = dict(block)
        if "paragraph" in block:
            shown["paragraph"], start = _paragraph(block["paragraph"], start)
        elif "table" in block:
            shown["table"], start = _table(block["table"], start)
        else:
            start += 1
        result.append({**_span(begin, start), **shown})
    return result, start


def _span(begin: int, end: int) -> dict[str, int]:
    return {"startIndex": begin, "endIndex": end} if begin else {"endIndex": end}


def _paragraph(paragraph: Element, start: int) -> tuple[Element, int]:
    elements = []
    for inline in paragraph["elements"]:
        begin, start = start, start + element_width(inline)
        elements.append({**_span(begin, start), **inline})
    return {"elements": elements, **{k: v for k, v in paragraph.items() if k != "elements"}}, start


def _table(table: Element, start: int) -> tuple[Element, int]:
    start += 1
    rows = []
    for row in table["tableRows"]:
        row_begin, start = start, start + 1
        shown = []
        for cell in row["tableCells"]:
            begin = start
            content, start = indexed(cell["content"], start + 1)
            shown.append({**_span(begin, start), **cell, "content": content})
        rows.append({**_span(row_begin, start), **row, "tableCells": shown})
    return {**table, "tableRows": rows}, start + 1


def _tab(data: Element, anchors: bool = False) -> Element:
    shown: Element = {"body": {"content": indexed(data["body"]["content"])[0]}}
    for kind in ("headers", "footers", "footnotes"):
        if data.get(kind):
            shown[kind] = {k: {**v, "content": indexed(v["content"])[0]} for k, v in data[kind].items()}
    order = ("documentStyle", "namedStyles", "lists", "namedRanges", "inlineObjects", "positionedObjects")
    order += ("dropdownDefinitions", *(("commentAnchors",) if anchors else ()))
    return {**shown, **{name: data[name] for name in order if data.get(name)}}


def _tree(entries: list[Element], parent: str | None, depth: int, anchors: bool) -> list[Element]:
    result = []
    for index, entry in enumerate(entries):
        properties = dict(entry["tabProperties"])
        properties["index"] = index
        if parent:
            properties |= {"parentTabId": parent, "nestingLevel": depth}
        shown: Element = {"tabProperties": properties, "documentTab": _tab(entry["documentTab"], anchors)}
        if entry.get("childTabs"):
            shown["childTabs"] = _tree(entry["childTabs"], properties["tabId"], depth + 1, anchors)
        result.append(shown)
    return result


def render(
    document: Element,
    by_tabs: bool,
    mode: str,
    editor: bool = True,
    comments: list[Element] | None = None,
    suggestions: list[Element] | None = None,
) -> Element:
    """`comments`: the threads, and where they are tied to the text; None: they are left out. Likewise `suggestions`."""
    head: Element = {"title": document["title"]}
    if editor:
        head["revisionId"] = document["revisionId"]
    head["suggestionsViewMode"] = mode
    head["documentId"] = document["documentId"]
    if comments is not None:
        head |= {"commentsViewMode": "COMMENTS_VIEW_MODE_INCLUDED", "comments": comments}
        head |= {"suggestions": suggestions} if suggestions else {}
    if by_tabs:
        return deepcopy({**head, "tabs": _tree(document["tabs"], None, 0, comments is not None)})
    return deepcopy({**_tab(document["tabs"][0]["documentTab"]), **head})


def document_text(document: Element) -> str:
    """All the body text, tab after tab: what the state page, an export and a diff show."""

    def no_id(kind: str) -> str:
        return kind

    tabs = Draft(document, no_id).tabs()
    texts: list[Any] = [plain_text(tab.segment("")) for tab in tabs]
    if len(tabs) == 1:
        return str(texts[0])
    return "".join(f"{tab.properties['title']}\n{text}" for tab, text in zip(tabs, texts, strict=True))
