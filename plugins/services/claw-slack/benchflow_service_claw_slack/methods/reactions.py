"""reactions.*"""

from __future__ import annotations

import re
from typing import Any

from benchflow_service_claw_slack.call import SlackCall, SlackError
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.channels import find_channel, is_member, readable
from benchflow_service_claw_slack.objects.files import find_file, may_see, show_file
from benchflow_service_claw_slack.objects.messages import find_message, permalink, show_message
from benchflow_service_claw_slack.paging import by_cursor, by_page

__all__: list[str] = []

Answer = dict[str, Any]
MAX_KINDS = 23
_SHORTCODE = re.compile(r"[a-z0-9_+'\-]+(::skin-tone-[2-6])?")


def _name(call: SlackCall) -> str:
    """Without colons. A name of Slack's own or of the workspace; anything in another alphabet is none."""
    name = call.text("name").strip().strip(":")
    if not name or not _SHORTCODE.fullmatch(name) or len(name) > 100:
        raise SlackError("invalid_name")
    return name


def _target(call: SlackCall) -> dict[str, Any]:
    if call.has("file"):
        return {"channel": "", "ts": "", "file": find_file(call)["id"]}
    if not call.has("channel") and not call.has("timestamp"):
        raise SlackError("no_item_specified")
    channel = find_channel(call)
    if not call.has("timestamp"):
        raise SlackError("no_item_specified")
    row = find_message(call, channel["id"], call.text("timestamp"))
    return {"channel": channel["id"], "ts": row["ts"], "file": ""}


@method("reactions.add", "reactions:write")
def add(call: SlackCall) -> Answer:
    name, target = _name(call), _target(call)
    if target["channel"]:
        channel = find_channel(call)
        if channel["is_archived"]:
            raise SlackError("is_archived")
        if not is_member(call.store, channel["id"], call.user) and call.is_bot:
            raise SlackError("not_in_channel")
    where = "channel = ? AND ts = ? AND file = ?"
    have = call.store.all(f"SELECT name, user FROM reactions WHERE {where}", *target.values())
    if any(row["name"] == name and row["user"] == call.user for row in have):
        raise SlackError("already_reacted")
    kinds = {row["name"] for row in have}
    if name not in kinds and len({row["name"] for row in have if row["user"] == call.user}) >= MAX_KINDS:
        raise SlackError("too_many_emoji")
    if name not in kinds and len(kinds) >= 50:
        raise SlackError("too_many_reactions")
    call.store.insert("reactions", name=name, user=call.user, **target)
    return {}


@method("reactions.remove", "reactions:write")
def remove(call: SlackCall) -> Answer:
    name, target = _name(call), _target(call)
    if not call.store.delete("reactions", name=name, user=call.user, **target):
        raise SlackError("no_reaction")
    return {}


@method("reactions.get", "reactions:read")
def get(call: SlackCall) -> Answer:
    target = _target(call)
    if target["file"]:
        return {"type": "file", "file": show_file(call, find_file(call))}
    channel = find_channel(call)
    readable(call, channel)
    row = find_message(call, target["channel"], target["ts"])
    message = show_message(call, row) | {"permalink": permalink(call, row)}
    return {"type": "message", "channel": target["channel"], "message": message}


@method("reactions.list", "reactions:read")
def list_reactions(call: SlackCall) -> Answer:
    user = call.text("user") or call.user
    if call.store.one("SELECT 1 FROM users WHERE id = ?", user) is None:
        raise SlackError("user_not_found")
    rows = call.store.all(
        "SELECT channel, ts, file, max(seq) AS seq FROM reactions WHERE user = ?"
        " GROUP BY channel, ts, file ORDER BY seq DESC",
        user,
    )
    items = [item for row in rows if (item := _item(call, row))]
    if call.has("cursor") or call.has("limit"):
        page, metadata = by_cursor(call, items, "reaction")
        return {"items": page, **metadata}
    page, paging = by_page(call, items)
    return {"items": page, "paging": paging, "response_metadata": {"next_cursor": ""}}


def _item(call: SlackCall, row: dict[str, Any]) -> Answer | None:
    if row["file"]:
        file = call.store.one("SELECT * FROM files WHERE id = ?", row["file"])
        return {"type": "file", "file": show_file(call, file)} if file and may_see(call, file) else None
    channel = call.store.one("SELECT * FROM channels WHERE id = ?", row["channel"])
    message = call.store.one("SELECT * FROM messages WHERE channel = ? AND ts = ?", row["channel"], row["ts"])
    if channel is None or message is None:
        return None
    if channel["kind"] != "channel" and not is_member(call.store, channel["id"], call.user):
        return None
    return {"type": "message", "channel": row["channel"], "message": show_message(call, message)}
