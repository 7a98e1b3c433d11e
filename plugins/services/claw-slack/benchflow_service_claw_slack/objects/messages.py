"""Messages: their keys, their threads, what is attached to them."""

from __future__ import annotations

import json
from typing import Any

from benchflow_claw_kit.store import Row, Store

from benchflow_service_claw_slack.call import SlackCall, SlackError
from benchflow_service_claw_slack.objects.users import bot_profile

__all__ = ["find_message", "new_ts", "permalink", "post", "reaction_list", "show_message"]


def new_ts(store: Store, channel: str) -> str:
    """Later than everything in the channel, and never used twice."""
    now = store.now_ms()
    ts = f"{now // 1000:010d}.{store.count('ts') * 100 % 1_000_000 + 9:06d}"
    last = store.value("SELECT max(ts) FROM messages WHERE channel = ?", channel)
    if last and ts <= last:
        seconds, _, micros = last.partition(".")
        number = int(seconds) * 1_000_000 + int(micros) + 100
        ts = f"{number // 1_000_000:010d}.{number % 1_000_000:06d}"
    return ts


def find_message(call: SlackCall, channel: str, ts: str, error: str = "message_not_found") -> Row:
    row = call.store.one("SELECT * FROM messages WHERE channel = ? AND ts = ?", channel, ts)
    if row is None:
        raise SlackError(error)
    return row


def permalink(call: SlackCall, row: Row) -> str:
    address = f"https://{call.team['domain']}.slack.com/archives/{row['channel']}/p{row['ts'].replace('.', '')}"
    if row["thread_ts"] and row["thread_ts"] != row["ts"]:
        address += f"?thread_ts={row['thread_ts']}&cid={row['channel']}"
    return address


def post(store: Store, channel: str, user: str | None, text: str, **columns: Any) -> Row:
    """A message at the end of a channel."""
    ts = columns.pop("ts", None) or new_ts(store, channel)
    values = {name: value for name, value in columns.items() if value is not None}
    store.insert("messages", channel=channel, ts=ts, user=user, text=text, **values)
    row = store.one("SELECT * FROM messages WHERE channel = ? AND ts = ?", channel, ts)
    assert row is not None
    return row


def reaction_list(store: Store, channel: str = "", ts: str = "", file: str = "") -> list[dict[str, Any]]:
    grouped: dict[str, list[str]] = {}
    rows = store.all(
        "SELECT name, user FROM reactions WHERE channel = ? AND ts = ? AND file = ? ORDER BY seq", channel, ts, file
    )
    for row in rows:
        grouped.setdefault(row["name"], []).append(row["user"])
    return [{"name": name, "users": users, "count": len(users)} for name, users in grouped.items()]


def show_message(call: SlackCall, row: Row) -> dict[str, Any]:
    shown: dict[str, Any] = {"type": "message", "ts": row["ts"], "text": row["text"], "team": call.team["id"]}
    if row["user"]:
        shown["user"] = row["user"]
    if row["subtype"]:
        shown["subtype"] = row["subtype"]
        shown.pop("team")
    for name in ("bot_id", "username"):
        if row[name]:
            shown[name] = row[name]
    for name in ("icons", "blocks", "attachments", "metadata"):
        if row[name]:
            shown[name] = json.loads(row[name])
    if row["bot_id"]:
        bot = call.store.one("SELECT * FROM users WHERE bot_id = ?", row["bot_id"])
        if bot:
            shown |= {"app_id": call.team["app_id"], "bot_profile": bot_profile(bot, call.team)}
    if row["edited_ts"]:
        shown["edited"] = {"user": row["edited_user"], "ts": row["edited_ts"]}
    if row["extra"]:
        shown |= json.loads(row["extra"])
    shown |= _thread(call, row)
    reactions = reaction_list(call.store, row["channel"], row["ts"])
    if reactions:
        shown["reactions"] = reactions
    if call.store.one("SELECT 1 FROM pins WHERE channel = ? AND ts = ?", row["channel"], row["ts"]):
        shown["pinned_to"] = [row["channel"]]
    if row["files"]:
        shown |= _files(call, json.loads(row["files"]))
    return shown


def _files(call: SlackCall, ids: list[str]) -> dict[str, Any]:
    from benchflow_service_claw_slack.objects.files import show_file

    rows = [call.store.one("SELECT * FROM files WHERE id = ?", file) for file in ids]
    listed = [
        show_file(call, row) if row else {"id": file, "mode": "tombstone"} for row, file in zip(rows, ids, strict=True)
    ]
    return {"files": listed, "upload": False}


def _thread(call: SlackCall, row: Row) -> dict[str, Any]:
    if not row["thread_ts"]:
        return {}
    shown: dict[str, Any] = {"thread_ts": row["thread_ts"]}
    if row["thread_ts"] != row["ts"]:
        parent = call.store.one(
            "SELECT user FROM messages WHERE channel = ? AND ts = ?", row["channel"], row["thread_ts"]
        )
        return shown | ({"parent_user_id": parent["user"]} if parent and parent["user"] else {})
    replies = call.store.all(
        "SELECT ts, user FROM messages WHERE channel = ? AND thread_ts = ? AND ts != thread_ts ORDER BY ts",
        row["channel"],
        row["ts"],
    )
    users = list(dict.fromkeys(reply["user"] for reply in replies if reply["user"]))
    if not replies:
        return {}
    return shown | {
        "reply_count": len(replies),
        "reply_users_count": len(users),
        "latest_reply": replies[-1]["ts"],
        "reply_users": users[:5],
        "is_locked": False,
        "subscribed": call.user in users or row["user"] == call.user,
    }
