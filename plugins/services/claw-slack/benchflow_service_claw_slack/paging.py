"""Two ways to page: a cursor with a limit, and the older page with a count."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, TypeVar

from benchflow_service_claw_slack.call import SlackCall, SlackError, bad_arguments

__all__ = ["by_cursor", "by_page", "limit_of", "read_cursor", "write_cursor"]

T = TypeVar("T")


def write_cursor(kind: str, value: str) -> str:
    return base64.b64encode(f"{kind}:{value}".encode()).decode()


def read_cursor(text: str, kind: str) -> str:
    try:
        found, mark, value = base64.b64decode(text.encode(), validate=True).decode().partition(":")
    except (ValueError, binascii.Error, UnicodeError):
        raise SlackError("invalid_cursor") from None
    if found != kind or not mark:
        raise SlackError("invalid_cursor")
    return value


def limit_of(call: SlackCall, default: int, most: int) -> int:
    if not call.has("limit"):
        return default
    text = call.text("limit").strip()
    if not text.lstrip("-").isdigit() or not 0 <= int(text) <= 10_000:
        raise SlackError("invalid_limit") if call.method != "conversations.history" else bad_arguments("invalid limit")
    return min(int(text) or default, most)


def by_cursor(
    call: SlackCall, items: Sequence[T], kind: str, default: int = 100, most: int = 1000
) -> tuple[list[T], dict[str, Any]]:
    """One page, and what `response_metadata` says about the next."""
    start = 0
    if call.has("cursor"):
        value = read_cursor(call.text("cursor"), kind)
        if not value.isdigit() or int(value) > len(items):
            raise SlackError("invalid_cursor")
        start = int(value)
    end = start + limit_of(call, default, most)
    following = write_cursor(kind, str(end)) if end < len(items) else ""
    return list(items[start:end]), {"response_metadata": {"next_cursor": following}}


def by_page(
    call: SlackCall, items: Sequence[T], default: int = 100, most: int = 1000
) -> tuple[list[T], dict[str, int]]:
    count = min(call.number("count", default, 1, 10_000), most)
    page = call.number("page", 1, 1, 100_000)
    pages = -(-len(items) // count)
    start = (page - 1) * count
    return list(items[start : start + count]), {"count": count, "total": len(items), "page": page, "pages": pages}
