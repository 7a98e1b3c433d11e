"""conversations.*: finding, reading, making and changing channels."""

from __future__ import annotations

import json
import re
from typing import Any

from benchflow_claw_kit.store import Row

from benchflow_service_claw_slack.call import SlackCall, SlackError, bad_arguments
from benchflow_service_claw_slack.methods.opening import make_channel, open_with
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.channels import (
    find_channel,
    is_member,
    member_ids,
    readable,
    scope_kind,
    show_channel,
)
from benchflow_service_claw_slack.objects.messages import find_message, post, show_message
from benchflow_service_claw_slack.paging import by_cursor, limit_of, read_cursor, write_cursor

__all__ = ["announce", "checked_name", "visible_channels"]

Answer = dict[str, Any]
KINDS = {"public_channel": "channel", "private_channel": "group", "im": "im", "mpim": "mpim"}
_TS = re.compile(r"\d{1,12}(\.\d{1,9})?")


def visible_channels(call: SlackCall, kinds: list[str], user: str | None = None) -> list[Row]:
    """Public ones and those of the user; direct messages only while they are open."""
    rows = call.store.all("SELECT * FROM channels ORDER BY kind, name, id")
    mine = {
        row["channel"]: row["is_open"]
        for row in call.store.all("SELECT channel, is_open FROM members WHERE user = ?", user or call.user)
    }
    return [
        row
        for row in rows
        if row["kind"] in kinds
        and (row["kind"] == "channel" or (row["id"] in mine and (row["kind"] == "group" or mine[row["id"]])))
    ]


def kinds_of(call: SlackCall) -> list[str]:
    wanted = call.listed("types") or ["public_channel"]
    if any(kind not in KINDS for kind in wanted):
        raise SlackError("invalid_types")
    for kind in wanted:
        call.need_scope(scope_kind({"kind": KINDS[kind]}, "read"))
    return [KINDS[kind] for kind in wanted]


@method("conversations.list")
def list_channels(call: SlackCall) -> Answer:
    rows = visible_channels(call, kinds_of(call))
    if call.flag("exclude_archived"):
        rows = [row for row in rows if not row["is_archived"]]
    page, metadata = by_cursor(call, rows, "channel")
    return {"channels": [show_channel(call, row, members=True) for row in page], **metadata}


@method("conversations.info")
def info(call: SlackCall) -> Answer:
    row = find_channel(call, action="read")
    shown = show_channel(call, row, members=call.flag("include_num_members"), state=True)
    if row["kind"] == "im" or is_member(call.store, row["id"], call.user):
        last = call.store.one("SELECT * FROM messages WHERE channel = ? ORDER BY ts DESC LIMIT 1", row["id"])
        if last and row["kind"] == "im":
            shown["latest"] = show_message(call, last)
    return {"channel": shown}


@method("conversations.members")
def members(call: SlackCall) -> Answer:
    row = find_channel(call, action="read")
    page, metadata = by_cursor(call, member_ids(call.store, row["id"]), "member")
    return {"members": page, **metadata}


def _bound(call: SlackCall, name: str) -> str | None:
    if not call.has(name):
        return None
    text = call.text(name).strip()
    if not _TS.fullmatch(text):
        raise SlackError(f"invalid_ts_{name}")
    seconds, _, micros = text.partition(".")
    return f"{min(int(seconds), 9_999_999_999):010d}.{micros[:6]:0<6}"


def _within(call: SlackCall, rows: list[Row], keep: str | None = None) -> list[Row]:
    oldest, latest = _bound(call, "oldest"), _bound(call, "latest")
    inclusive = call.flag("inclusive")

    def inside(ts: str) -> bool:
        if oldest and (ts < oldest or (ts == oldest and not inclusive)):
            return False
        return not (latest and (ts > latest or (ts == latest and not inclusive)))

    return [row for row in rows if row["ts"] == keep or inside(row["ts"])]


@method("conversations.history")
def history(call: SlackCall) -> Answer:
    """Newest first; replies are in their thread only, unless they were sent to the channel too."""
    channel = find_channel(call, action="history")
    readable(call, channel)
    rows = call.store.all(
        "SELECT * FROM messages WHERE channel = ? AND (thread_ts IS NULL OR thread_ts = ts OR broadcast = 1)"
        " ORDER BY ts DESC",
        channel["id"],
    )
    rows = _within(call, rows)
    if call.has("cursor"):
        before = read_cursor(call.text("cursor"), "next_ts")
        rows = [row for row in rows if row["ts"] <= before]
    limit = limit_of(call, 100, 999)
    page, rest = rows[:limit], rows[limit:]
    pins = call.store.value("SELECT count(*) FROM pins WHERE channel = ?", channel["id"])
    answer: Answer = {
        "messages": [show_message(call, row) for row in page],
        "has_more": bool(rest),
        "pin_count": pins,
        "channel_actions_ts": None,
        "channel_actions_count": 0,
    }
    if call.has("latest"):
        answer["latest"] = call.text("latest")
    if rest:
        answer["response_metadata"] = {"next_cursor": write_cursor("next_ts", rest[0]["ts"])}
    return answer


@method("conversations.replies")
def replies(call: SlackCall) -> Answer:
    """The thread's first message, then its replies, oldest first."""
    channel = find_channel(call, action="history")
    readable(call, channel)
    ts = call.need("ts")
    first = find_message(call, channel["id"], ts, "thread_not_found")
    thread = first["thread_ts"] or first["ts"]
    rows = call.store.all(
        "SELECT * FROM messages WHERE channel = ? AND (ts = ? OR thread_ts = ?) ORDER BY ts",
        channel["id"],
        thread,
        thread,
    )
    page, metadata = by_cursor(call, _within(call, rows, keep=thread), "reply", 1000)
    more = bool(metadata["response_metadata"]["next_cursor"])
    return {"messages": [show_message(call, row) for row in page], "has_more": more} | (metadata if more else {})


# -- making and changing


def checked_name(call: SlackCall) -> str:
    name = call.text("name").strip().removeprefix("#")
    if not name:
        raise SlackError("invalid_name_required")
    if len(name) > 80:
        raise SlackError("invalid_name_maxlength")
    if not re.search(r"\w", name):
        raise SlackError("invalid_name_punctuation")
    if not re.fullmatch(r"[^\W_][\w-]*|[\w-]+", name) or name != name.lower() or re.search(r"[\s.]", name):
        raise SlackError("invalid_name_specials")
    taken = call.store.one("SELECT 1 FROM channels WHERE name = ? AND kind IN ('channel', 'group')", name)
    if taken:
        raise SlackError("name_taken")
    return name


def announce(call: SlackCall, channel: str, subtype: str, text: str, user: str | None = None, **extra: Any) -> None:
    """The line a channel shows when something about it changed."""
    post(call.store, channel, user or call.user, text, subtype=subtype, extra=extra or None)


@method("conversations.create")
def create(call: SlackCall) -> Answer:
    kind = "group" if call.flag("is_private") else "channel"
    call.need_scope(
        f"{'groups' if kind == 'group' else 'channels'}:{'write' if kind == 'group' else 'manage'}", "channels:write"
    )
    row = make_channel(call.store, kind, checked_name(call), call.user, [call.user])
    announce(call, row["id"], f"{kind}_join", f"<@{call.user}> has joined the {_word(row)}")
    return {"channel": show_channel(call, row)}


def _word(row: Row) -> str:
    return "group" if row["kind"] == "group" else "channel"


def changeable(call: SlackCall, *, member: bool = True) -> Row:
    row = find_channel(call)
    call.need_scope(scope_kind(row, "write"), scope_kind(row, "manage"))
    if row["kind"] in ("im", "mpim"):
        raise SlackError("method_not_supported_for_channel_type")
    if member and not is_member(call.store, row["id"], call.user):
        raise SlackError("not_in_channel")
    return row


@method("conversations.archive")
def archive(call: SlackCall) -> Answer:
    row = changeable(call)
    if row["is_general"]:
        raise SlackError("cant_archive_general")
    if row["is_archived"]:
        raise SlackError("already_archived")
    announce(
        call,
        row["id"],
        f"{_word(row)}_archive",
        f"<@{call.user}> archived the channel",
        members=member_ids(call.store, row["id"]),
    )
    call.store.update("channels", {"id": row["id"]}, is_archived=1, updated=call.store.now_ms())
    return {}


@method("conversations.unarchive")
def unarchive(call: SlackCall) -> Answer:
    row = changeable(call, member=False)
    if not row["is_archived"]:
        raise SlackError("not_archived")
    call.store.update("channels", {"id": row["id"]}, is_archived=0, updated=call.store.now_ms())
    if not is_member(call.store, row["id"], call.user):
        call.store.insert("members", channel=row["id"], user=call.user, joined=call.now)
    announce(call, row["id"], f"{_word(row)}_unarchive", f"<@{call.user}> un-archived the channel")
    return {}


def active(call: SlackCall) -> Row:
    row = changeable(call)
    if row["is_archived"]:
        raise SlackError("is_archived")
    return row


@method("conversations.rename")
def rename(call: SlackCall) -> Answer:
    row = active(call)
    if row["is_general"]:
        raise SlackError("not_authorized")
    if call.me["id"] != row["creator"] and not call.me["is_admin"]:
        raise SlackError("not_authorized")
    name = checked_name(call)
    before = [row["name"], *json.loads(row["previous_names"])]
    call.store.update("channels", {"id": row["id"]}, name=name, previous_names=before, updated=call.store.now_ms())
    text = f'<@{call.user}> has renamed the channel from "{row["name"]}" to "{name}"'
    announce(call, row["id"], f"{_word(row)}_name", text, old_name=row["name"], name=name)
    return {"channel": show_channel(call, _again(call, row))}


def _again(call: SlackCall, row: Row) -> Row:
    found = call.store.one("SELECT * FROM channels WHERE id = ?", row["id"])
    assert found is not None
    return found


def _describe(call: SlackCall, what: str) -> Answer:
    row = find_channel(call)
    call.need_scope(scope_kind(row, "write"), scope_kind(row, "manage"), scope_kind(row, "write.topic"))
    if row["kind"] == "im":
        raise SlackError("method_not_supported_for_channel_type")
    if not is_member(call.store, row["id"], call.user):
        raise SlackError("not_in_channel")
    if row["is_archived"]:
        raise SlackError("is_archived")
    if what not in call.args:
        raise bad_arguments(f"missing required field: {what}")
    text = call.text(what)
    if len(text) > 250:
        raise SlackError("too_long")
    columns = {what: text, f"{what}_creator": call.user, f"{what}_set": call.now}
    call.store.update("channels", {"id": row["id"]}, updated=call.store.now_ms(), **columns)
    line = f"<@{call.user}> set the channel {'topic' if what == 'topic' else 'description'}: {text}"
    announce(call, row["id"], f"{_word(row)}_{what}", line, **{what: text})
    return {"channel": show_channel(call, _again(call, row)), what: text}


@method("conversations.setTopic")
def set_topic(call: SlackCall) -> Answer:
    return _describe(call, "topic")


@method("conversations.setPurpose")
def set_purpose(call: SlackCall) -> Answer:
    return _describe(call, "purpose")


# -- direct messages and what was read


@method("conversations.open")
def open_conversation(call: SlackCall) -> Answer:
    if call.has("channel"):
        row = find_channel(call)
        if row["kind"] not in ("im", "mpim"):
            raise SlackError("channel_not_found")
        was = call.store.value("SELECT is_open FROM members WHERE channel = ? AND user = ?", row["id"], call.user)
        call.store.run("UPDATE members SET is_open = 1 WHERE channel = ? AND user = ?", row["id"], call.user)
    else:
        users = call.listed("users")
        if not users:
            raise SlackError("users_list_not_supplied")
        if len(users) > 8:
            raise SlackError("too_many_users")
        call.need_scope("im:write" if len(set(users)) == 1 else "mpim:write")
        row, was = open_with(call, users, create=not call.flag("prevent_creation"))
    shown = show_channel(call, row) if call.flag("return_im") else {"id": row["id"]}
    return {"channel": shown} | ({"no_op": True, "already_open": True} if was else {})


@method("conversations.close")
def close(call: SlackCall) -> Answer:
    row = find_channel(call)
    if row["kind"] not in ("im", "mpim"):
        raise SlackError("method_not_supported_for_channel_type")
    call.need_scope(scope_kind(row, "write"))
    was = call.store.run(
        "UPDATE members SET is_open = 0 WHERE channel = ? AND user = ? AND is_open = 1", row["id"], call.user
    )
    return {} if was else {"no_op": True, "already_closed": True}


@method("conversations.mark")
def mark(call: SlackCall) -> Answer:
    row = find_channel(call)
    call.need_scope(scope_kind(row, "write"), scope_kind(row, "manage"))
    ts = _bound(call, "ts") if call.has("ts") else None
    if ts is None:
        raise SlackError("invalid_timestamp")
    if not is_member(call.store, row["id"], call.user):
        raise SlackError("not_in_channel")
    call.store.run("UPDATE members SET last_read = ? WHERE channel = ? AND user = ?", ts, row["id"], call.user)
    return {}
