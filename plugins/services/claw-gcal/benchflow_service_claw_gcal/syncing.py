"""Pages and sync tokens of the lists: a token remembers the version a client has seen."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from benchflow_claw_kit import ApiError, BadToken, Call, Row, read_token, write_token

from benchflow_service_claw_gcal.access import etag

__all__ = ["gone", "page_of", "read_sync", "write_sync"]


def gone() -> ApiError:
    return ApiError(
        410,
        "Sync token is no longer valid, a full sync is required.",
        "fullSyncRequired",
        domain="calendar",
        location="syncToken",
    )


def write_sync(call: Call, what: str, facts: dict[str, Any]) -> str:
    return write_token(call.store.secret, facts, ["sync", what])


def read_sync(call: Call, what: str) -> dict[str, Any] | None:
    """What a sync token holds. One that was never ours, or is of another world, is as good as expired."""
    token = call.get("syncToken")
    if token is None:
        return None
    if not re.fullmatch(r"[A-Za-z0-9_=\-]{4,2000}", token):
        raise ApiError(400, "Invalid sync token value.", "invalid", location="syncToken")
    try:
        return read_token(call.store.secret, token, ["sync", what])
    except (BadToken, ValueError):
        raise gone() from None


def current_version(call: Call) -> int:
    return int(call.store.value("SELECT value FROM _counters WHERE name = 'version'") or 0)


def bad_page_token() -> ApiError:
    return ApiError(400, "Invalid page token value.", "invalid", location="pageToken")


def page_size(call: Call, default: int, most: int) -> int:
    return min(int(call.get("maxResults", default)), most)


def page_of(
    call: Call, what: str, rows: list[Row], wanted: Callable[[Row, bool], bool], default: int, most: int
) -> tuple[list[Row], dict[str, Any]]:
    """A page of rows that have `rowid` and `version`, and the tokens beside it."""
    sync = read_sync(call, what)
    since = sync["version"] if sync else 0
    rows = [row for row in rows if row["version"] > since and wanted(row, sync is not None)]
    version = current_version(call)
    question = [what, call.get("syncToken"), call.get("showDeleted"), call.get("showHidden"), call.get("minAccessRole")]
    if call.get("pageToken"):
        try:
            place = read_token(call.store.secret, call.get("pageToken"), question)
        except (BadToken, ValueError):
            raise bad_page_token() from None
        rows, version = [row for row in rows if row["rowid"] > place["after"]], place["version"]
    size = page_size(call, default, most)
    beside: dict[str, Any] = {"etag": etag(max([row["version"] for row in rows], default=version))}
    if len(rows) > size:
        place = {"after": rows[size - 1]["rowid"], "version": version}
        beside["nextPageToken"] = write_token(call.store.secret, place, question)
    else:
        beside["nextSyncToken"] = write_sync(call, what, {"version": version})
    return rows[:size], beside
