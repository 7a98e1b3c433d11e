"""Messages for later. They are posted by the first call after their time."""

from __future__ import annotations

import json
import time
from typing import Any

from benchflow_claw_kit.store import Store

from benchflow_service_claw_slack.call import SlackCall, SlackError
from benchflow_service_claw_slack.methods.chat import author, channel_to_write, content_of, thread_of
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.channels import find_channel
from benchflow_service_claw_slack.objects.messages import post
from benchflow_service_claw_slack.paging import by_cursor

__all__ = ["post_what_is_due"]

Answer = dict[str, Any]
LONGEST = 120 * 86400


@method("chat.scheduleMessage", "chat:write")
def schedule(call: SlackCall) -> Answer:
    channel = channel_to_write(call)
    at = call.number("post_at", 0, error="invalid_time")
    if not call.has("post_at"):
        raise SlackError("invalid_time")
    if at <= call.now:
        raise SlackError("time_in_past")
    if at > max(call.now, int(time.time())) + LONGEST:
        raise SlackError("time_too_far")
    content = content_of(call)
    thread = thread_of(call, channel["id"])
    message = {k: v for k, v in {**content, **author(call), "thread_ts": thread}.items() if v is not None}
    scheduled = "Q" + call.store.new_id("scheduled", 10, "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ")
    call.store.insert(
        "scheduled_messages",
        id=scheduled,
        channel=channel["id"],
        post_at=at,
        user=call.user,
        created=call.now,
        message=message,
    )
    shown = {"text": message["text"], "type": "delayed_message", "user": call.user, "team": call.team["id"]}
    if call.is_bot:
        shown["bot_id"] = call.me["bot_id"]
    return {"channel": channel["id"], "scheduled_message_id": scheduled, "post_at": str(at), "message": shown}


@method("chat.deleteScheduledMessage", "chat:write")
def delete_scheduled(call: SlackCall) -> Answer:
    channel = find_channel(call)
    scheduled = call.need("scheduled_message_id")
    gone = call.store.delete("scheduled_messages", id=scheduled, channel=channel["id"], user=call.user)
    if not gone:
        raise SlackError("invalid_scheduled_message_id")
    return {}


@method("chat.scheduledMessages.list")
def list_scheduled(call: SlackCall) -> Answer:
    rows = call.store.all("SELECT * FROM scheduled_messages WHERE user = ? ORDER BY post_at, id", call.user)
    if call.has("channel"):
        channel = find_channel(call)["id"]
        rows = [row for row in rows if row["channel"] == channel]
    if call.has("oldest"):
        rows = [row for row in rows if row["post_at"] >= call.number("oldest", 0)]
    if call.has("latest"):
        rows = [row for row in rows if row["post_at"] <= call.number("latest", 0)]
    page, metadata = by_cursor(call, rows, "scheduled")
    shown = [
        {
            "id": row["id"],
            "channel_id": row["channel"],
            "post_at": row["post_at"],
            "date_created": row["created"],
            "text": json.loads(row["message"])["text"],
        }
        for row in page
    ]
    return {"scheduled_messages": shown, **metadata}


def post_what_is_due(store: Store) -> None:
    """Each at its own time, so that the channel's order is the order of the times."""
    for row in store.all(
        "SELECT * FROM scheduled_messages WHERE post_at <= ? ORDER BY post_at, id", store.now_ms() // 1000
    ):
        message = json.loads(row["message"])
        text = message.pop("text")
        post(store, row["channel"], row["user"], text, **message)
        if message.get("thread_ts"):
            store.run(
                "UPDATE messages SET thread_ts = ts WHERE channel = ? AND ts = ?", row["channel"], message["thread_ts"]
            )
        store.delete("scheduled_messages", id=row["id"])
