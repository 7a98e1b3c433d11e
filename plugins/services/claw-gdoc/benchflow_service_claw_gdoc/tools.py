"""What an agent is offered over MCP."""

from __future__ import annotations

from typing import Any

from benchflow_claw_kit.service import Tool

__all__ = ["TOOLS"]

_TEXT = {"type": "string"}
_ID = {"type": "string", "description": "the document's id"}


def _replace(arguments: dict[str, Any]) -> dict[str, Any]:
    find = {"text": arguments["find"], "matchCase": bool(arguments.get("match_case", True))}
    request = {"replaceAllText": {"containsText": find, "replaceText": arguments["replace"]}}
    return {"documentId": arguments["documentId"], "requests": [request]}


def _append(arguments: dict[str, Any]) -> dict[str, Any]:
    request = {"insertText": {"endOfSegmentLocation": {}, "text": arguments["text"]}}
    return {"documentId": arguments["documentId"], "requests": [request]}


TOOLS = (
    Tool("create_document", "Make an empty document.", "docs.documents.create", {"title": _TEXT}, ("title",)),
    Tool(
        "get_document", "Read a document with its indexes.", "docs.documents.get", {"documentId": _ID}, ("documentId",)
    ),
    Tool(
        "batch_update",
        "Apply Docs API requests (insertText, updateTextStyle, insertTable …), all or none.",
        "docs.documents.batchUpdate",
        {
            "documentId": _ID,
            "requests": {"type": "array", "items": {"type": "object"}},
            "writeControl": {"type": "object"},
        },
        ("documentId", "requests"),
    ),
    Tool(
        "append_text",
        "Put text at the end of a document.",
        "docs.documents.batchUpdate",
        {"documentId": _ID, "text": _TEXT},
        ("documentId", "text"),
        prepare=_append,
    ),
    Tool(
        "replace_all_text",
        "Replace a text wherever it stands.",
        "docs.documents.batchUpdate",
        {"documentId": _ID, "find": _TEXT, "replace": _TEXT, "match_case": {"type": "boolean"}},
        ("documentId", "find", "replace"),
        prepare=_replace,
    ),
)
