"""bookmarks.*: the links at the top of a channel."""

from __future__ import annotations

import re
from typing import Any

from benchflow_claw_kit.store import Row

from benchflow_service_claw_slack.call import SlackCall, SlackError
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.channels import find_channel, is_member

__all__: list[str] = []

Answer = dict[str, Any]


def _channel(call: SlackCall) -> Row:
    row = find_channel(call, "channel_id")
    if not is_member(call.store, row["id"], call.user):
        raise SlackError("not_in_channel")
    return row


def _show(call: SlackCall, row: Row) -> Answer:
    return {
        "id": row["id"],
        "channel_id": row["channel"],
        "title": row["title"],
        "link": row["link"] or "",
        "emoji": row["emoji"] or "",
        "icon_url": "",
        "type": row["type"],
        "entity_id": None,
        "date_created": row["created"],
        "date_updated": row["updated"],
        "rank": row["rank"],
        "last_updated_by_user_id": row["updated_by"],
        "last_updated_by_team_id": call.team["id"],
        "shortcut_id": None,
        "app_id": None,
        "app_action_id": None,
    }


def _checked(call: SlackCall, name: str) -> str:
    value = call.text(name)
    if name == "link" and not re.match(r"https?://[^\s]+$", value):
        raise SlackError("invalid_link")
    if name == "emoji" and not re.fullmatch(r":[\w+'-]+:", value):
        raise SlackError("invalid_emoji")
    return value


@method("bookmarks.add", "bookmarks:write")
def add(call: SlackCall) -> Answer:
    channel = _channel(call)
    title, kind = call.need("title"), call.need("type")
    if kind != "link":
        raise SlackError("invalid_bookmark_type")
    if not call.has("link"):
        raise SlackError("invalid_link")
    if call.store.value("SELECT count(*) FROM bookmarks WHERE channel = ?", channel["id"]) >= 100:
        raise SlackError("too_many_bookmarks")
    bookmark = "Bk" + call.store.new_id("bookmark", 9, "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ")
    call.store.insert(
        "bookmarks",
        id=bookmark,
        channel=channel["id"],
        title=title,
        link=_checked(call, "link"),
        emoji=_checked(call, "emoji") if call.has("emoji") else None,
        type=kind,
        rank=f"{call.store.count('bookmark rank'):04d}",
        created=call.now,
        updated=0,
        updated_by=call.user,
    )
    return {"bookmark": _show(call, _find(call, channel["id"], bookmark))}


def _find(call: SlackCall, channel: str, bookmark: str) -> Row:
    row = call.store.one("SELECT * FROM bookmarks WHERE id = ? AND channel = ?", bookmark, channel)
    if row is None:
        raise SlackError("not_found")
    return row


@method("bookmarks.edit", "bookmarks:write")
def edit(call: SlackCall) -> Answer:
    channel = _channel(call)
    row = _find(call, channel["id"], call.need("bookmark_id"))
    changes = {name: _checked(call, name) for name in ("title", "link", "emoji") if call.has(name)}
    call.store.update("bookmarks", {"id": row["id"]}, **changes, updated=call.now, updated_by=call.user)
    return {"bookmark": _show(call, _find(call, channel["id"], row["id"]))}


@method("bookmarks.list", "bookmarks:read")
def list_bookmarks(call: SlackCall) -> Answer:
    channel = _channel(call)
    rows = call.store.all("SELECT * FROM bookmarks WHERE channel = ? ORDER BY rank", channel["id"])
    return {"bookmarks": [_show(call, row) for row in rows]}


@method("bookmarks.remove", "bookmarks:write")
def remove(call: SlackCall) -> Answer:
    channel = _channel(call)
    _find(call, channel["id"], call.need("bookmark_id"))
    call.store.delete("bookmarks", id=call.text("bookmark_id"))
    return {}
