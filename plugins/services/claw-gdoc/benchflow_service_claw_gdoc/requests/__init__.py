"""The request types of `documents.batchUpdate`, by family."""

from __future__ import annotations

from benchflow_service_claw_gdoc.requests import comments, dropdowns, objects, parts, suggestions, tables, tabs, text
from benchflow_service_claw_gdoc.requests.registry import HANDLERS

__all__ = ["HANDLERS", "comments", "dropdowns", "objects", "parts", "suggestions", "tables", "tabs", "text"]
