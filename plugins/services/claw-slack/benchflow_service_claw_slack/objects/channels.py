"""Conversations: public and private channels, direct messages, groups of people."""

from __future__ import annotations

import json
from typing import Any

from benchflow_claw_kit.store import Row, Store

from benchflow_service_claw_slack.call import SlackCall, SlackError

__all__ = [
    "NEVER",
    "display_name",
    "find_channel",
    "is_member",
    "member_ids",
    "readable",
    "scope_kind",
    "show_channel",
    "unread",
]

NEVER = "0000000000.000000"
_SCOPES = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}


def scope_kind(row: Row, action: str) -> str:
    return f"{_SCOPES[row['kind']]}:{action}"


def member_ids(store: Store, channel: str) -> list[str]:
    return [r["user"] for r in store.all("SELECT user FROM members WHERE channel = ? ORDER BY joined, user", channel)]


def is_member(store: Store, channel: str, user: str) -> bool:
    return store.one("SELECT 1 FROM members WHERE channel = ? AND user = ?", channel, user) is not None


def find_channel(call: SlackCall, name: str = "channel", action: str | None = None) -> Row:
    """The channel an argument names: its id, or (as chat methods allow) `#name`. Private ones only for members."""
    given = call.text(name).strip()
    if not given:
        raise SlackError("channel_not_found") if call.method.startswith("chat.") else _missing(name)
    row = call.store.one("SELECT * FROM channels WHERE id = ?", given)
    if row is None and call.method.startswith("chat."):
        row = call.store.one(
            "SELECT * FROM channels WHERE name = ? AND kind IN ('channel', 'group')", given.removeprefix("#").lower()
        )
    if row is None or (row["kind"] != "channel" and not is_member(call.store, row["id"], call.user)):
        raise SlackError("channel_not_found")
    if action:
        call.need_scope(scope_kind(row, action))
    return row


def _missing(name: str) -> SlackError:
    return SlackError("invalid_arguments", response_metadata={"messages": [f"[ERROR] missing required field: {name}"]})


def readable(call: SlackCall, row: Row) -> None:
    """What is said in a channel is for its members; a person may read any public one."""
    if is_member(call.store, row["id"], call.user) or (row["kind"] == "channel" and not call.is_bot):
        return
    raise SlackError("not_in_channel")


def display_name(call: SlackCall, row: Row) -> str:
    """A direct message is called after the other one."""
    if row["kind"] != "im":
        return str(row["name"])
    return next((user for user in member_ids(call.store, row["id"]) if user != call.user), call.user)


def unread(call: SlackCall, row: Row) -> dict[str, Any]:
    mine = call.store.one("SELECT * FROM members WHERE channel = ? AND user = ?", row["id"], call.user)
    if mine is None:
        return {}
    count = call.store.value(
        "SELECT count(*) FROM messages WHERE channel = ? AND ts > ?"
        " AND (thread_ts IS NULL OR thread_ts = ts OR broadcast) AND user IS NOT ?",
        row["id"],
        mine["last_read"],
        call.user,
    )
    counts = {"unread_count": count, "unread_count_display": count}
    return {"last_read": mine["last_read"], "is_open": bool(mine["is_open"]), **counts}


def show_channel(call: SlackCall, row: Row, members: bool = False, state: bool = False) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": row["id"],
        "created": row["created"],
        "creator": row["creator"],
        "is_archived": bool(row["is_archived"]),
        "is_channel": row["kind"] == "channel",
        "is_group": row["kind"] == "group",
        "is_im": row["kind"] == "im",
        "is_mpim": row["kind"] == "mpim",
        "is_private": row["kind"] != "channel",
        "is_org_shared": False,
        "context_team_id": call.team["id"],
        "updated": row["updated"],
    }
    if row["kind"] == "im":
        other = display_name(call, row)
        gone = call.store.value("SELECT deleted FROM users WHERE id = ?", other)
        shown |= {"user": other, "is_user_deleted": bool(gone), "priority": 0}
        for name in ("creator", "is_channel", "is_group", "is_mpim", "is_private"):
            shown.pop(name)
    else:
        shown |= _named(call, row)
    if members:
        shown["num_members"] = len(member_ids(call.store, row["id"]))
    if state:
        shown |= unread(call, row)
    return shown


def _named(call: SlackCall, row: Row) -> dict[str, Any]:
    return {
        "name": row["name"],
        "name_normalized": row["name"],
        "is_general": bool(row["is_general"]),
        "unlinked": 0,
        "is_shared": False,
        "is_ext_shared": False,
        "is_pending_ext_shared": False,
        "pending_shared": [],
        "pending_connected_team_ids": [],
        "shared_team_ids": [call.team["id"]],
        "parent_conversation": None,
        "is_member": is_member(call.store, row["id"], call.user),
        "topic": {"value": row["topic"], "creator": row["topic_creator"], "last_set": row["topic_set"]},
        "purpose": {"value": row["purpose"], "creator": row["purpose_creator"], "last_set": row["purpose_set"]},
        "previous_names": json.loads(row["previous_names"]),
    }
