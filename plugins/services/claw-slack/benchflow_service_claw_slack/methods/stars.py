"""stars.*: what a person keeps for later."""

from __future__ import annotations

from typing import Any

from benchflow_service_claw_slack.call import SlackCall, SlackError
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.channels import find_channel
from benchflow_service_claw_slack.objects.files import find_file, show_file
from benchflow_service_claw_slack.objects.messages import find_message, permalink, show_message
from benchflow_service_claw_slack.paging import by_cursor, by_page

__all__: list[str] = []

Answer = dict[str, Any]


def _target(call: SlackCall) -> dict[str, Any]:
    if call.has("file"):
        return {"user": call.user, "channel": "", "ts": "", "file": find_file(call)["id"]}
    if not call.has("channel"):
        raise SlackError("no_item_specified")
    channel = find_channel(call)
    ts = find_message(call, channel["id"], call.text("timestamp"))["ts"] if call.has("timestamp") else ""
    return {"user": call.user, "channel": channel["id"], "ts": ts, "file": ""}


@method("stars.add", "stars:write", people_only=True)
def add(call: SlackCall) -> Answer:
    target: dict[str, Any] = _target(call)
    if call.store.one("SELECT 1 FROM stars WHERE user = ? AND channel = ? AND ts = ? AND file = ?", *target.values()):
        raise SlackError("already_starred")
    call.store.insert("stars", created=call.now, **target)
    return {}


@method("stars.remove", "stars:write", people_only=True)
def remove(call: SlackCall) -> Answer:
    if not call.store.delete("stars", **_target(call)):
        raise SlackError("not_starred")
    return {}


@method("stars.list", "stars:read", people_only=True)
def list_stars(call: SlackCall) -> Answer:
    rows = call.store.all("SELECT * FROM stars WHERE user = ? ORDER BY created DESC, ts DESC", call.user)
    items = [_item(call, row) for row in rows]
    if call.has("cursor") or call.has("limit"):
        page, metadata = by_cursor(call, items, "star")
        return {"items": page, **metadata}
    page, paging = by_page(call, items)
    return {"items": page, "paging": paging}


def _item(call: SlackCall, row: dict[str, Any]) -> Answer:
    shown: Answer = {"date_create": row["created"]}
    if row["file"]:
        file = call.store.one("SELECT * FROM files WHERE id = ?", row["file"])
        return shown | {"type": "file"} | ({"file": show_file(call, file)} if file else {})
    if not row["ts"]:
        kind = call.store.value("SELECT kind FROM channels WHERE id = ?", row["channel"])
        return shown | {"type": "im" if kind == "im" else "channel", "channel": row["channel"]}
    message = find_message(call, row["channel"], row["ts"])
    body = show_message(call, message) | {"is_starred": True, "permalink": permalink(call, message)}
    return shown | {"type": "message", "channel": row["channel"], "message": body}
