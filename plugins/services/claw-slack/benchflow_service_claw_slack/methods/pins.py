"""pins.*"""

from __future__ import annotations

from typing import Any

from benchflow_service_claw_slack.call import SlackCall, SlackError
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.channels import find_channel, is_member
from benchflow_service_claw_slack.objects.messages import find_message, permalink, show_message

__all__: list[str] = []

Answer = dict[str, Any]
MOST = 100


def _target(call: SlackCall) -> tuple[str, str]:
    channel = find_channel(call)
    if not is_member(call.store, channel["id"], call.user):
        raise SlackError("not_in_channel")
    if channel["is_archived"]:
        raise SlackError("is_archived")
    if not call.has("timestamp"):
        raise SlackError("no_item_specified")
    return channel["id"], find_message(call, channel["id"], call.text("timestamp"))["ts"]


@method("pins.add", "pins:write")
def add(call: SlackCall) -> Answer:
    channel, ts = _target(call)
    if call.store.one("SELECT 1 FROM pins WHERE channel = ? AND ts = ?", channel, ts):
        raise SlackError("already_pinned")
    if call.store.value("SELECT count(*) FROM pins WHERE channel = ?", channel) >= MOST:
        raise SlackError("too_many_pins")
    call.store.insert("pins", channel=channel, ts=ts, user=call.user, created=call.now)
    return {}


@method("pins.remove", "pins:write")
def remove(call: SlackCall) -> Answer:
    channel, ts = _target(call)
    if not call.store.delete("pins", channel=channel, ts=ts):
        raise SlackError("no_pin")
    return {}


@method("pins.list", "pins:read")
def list_pins(call: SlackCall) -> Answer:
    channel = find_channel(call)
    items = []
    for pin in call.store.all("SELECT * FROM pins WHERE channel = ? ORDER BY created DESC, ts DESC", channel["id"]):
        row = find_message(call, channel["id"], pin["ts"])
        message = show_message(call, row) | {"permalink": permalink(call, row)}
        items.append(
            {
                "type": "message",
                "channel": channel["id"],
                "created": pin["created"],
                "created_by": pin["user"],
                "message": message,
            }
        )
    return {"items": items}
