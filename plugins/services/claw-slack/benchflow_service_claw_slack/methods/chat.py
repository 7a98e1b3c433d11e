"""chat.*: saying something, changing it, taking it back."""

from __future__ import annotations

import re
from typing import Any

from benchflow_claw_kit.store import Row

from benchflow_service_claw_slack.blocks import attachments_of, blocks_of
from benchflow_service_claw_slack.call import SlackCall, SlackError
from benchflow_service_claw_slack.methods.opening import direct_message
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.channels import find_channel, is_member
from benchflow_service_claw_slack.objects.messages import find_message, new_ts, permalink, post, show_message

__all__ = ["content_of", "deliver", "writable"]

Answer = dict[str, Any]
MAX_TEXT = 40_000
TS = re.compile(r"\d{1,10}\.\d{1,6}")


def channel_to_write(call: SlackCall) -> Row:
    """A channel by id or name; a user's id means the direct message with them."""
    given = call.text("channel").strip()
    user = given.removeprefix("@")
    if user and user[:1] in "UWB" and call.store.one("SELECT 1 FROM users WHERE id = ?", user):
        return direct_message(call, user)
    row = find_channel(call)
    writable(call, row)
    return row


def writable(call: SlackCall, row: Row) -> None:
    if row["is_archived"]:
        raise SlackError("is_archived")
    if is_member(call.store, row["id"], call.user):
        return
    if row["kind"] == "channel" and call.scopes is not None and "chat:write.public" in call.scopes:
        return
    raise SlackError("not_in_channel")


def content_of(call: SlackCall) -> dict[str, Any]:
    """What a message says: text, blocks, attachments; at least one of them."""
    text = call.text("text") or call.text("markdown_text")
    if call.has("markdown_text") and (call.has("text") or call.has("blocks")):
        raise SlackError("markdown_text_conflict")
    blocks, attachments = blocks_of(call), attachments_of(call)
    if not text and not blocks and not attachments:
        raise SlackError("no_text")
    if len(text) > MAX_TEXT:
        raise SlackError("msg_too_long")
    metadata = call.structure("metadata", "invalid_metadata_format")
    if metadata is not None and not (
        isinstance(metadata, dict) and "event_type" in metadata and "event_payload" in metadata
    ):
        raise SlackError(
            "metadata_must_be_sent_from_app" if not isinstance(metadata, dict) else "invalid_metadata_format"
        )
    return {
        "text": _escaped(call, text),
        "blocks": blocks or None,
        "attachments": attachments or None,
        "metadata": metadata,
    }


def _escaped(call: SlackCall, text: str) -> str:
    """`link_names` and `parse=full` turn @name and #channel into links; addresses become links too."""
    if not call.flag("link_names") and call.text("parse") != "full":
        return text

    def mention(match: re.Match[str]) -> str:
        row = call.store.one("SELECT id FROM users WHERE name = ?", match[1])
        return f"<@{row['id']}>" if row else match[0]

    def channel(match: re.Match[str]) -> str:
        row = call.store.one("SELECT id, name FROM channels WHERE name = ? AND kind = 'channel'", match[1])
        return f"<#{row['id']}|{row['name']}>" if row else match[0]

    text = re.sub(r"(?<![\w<])@(here|channel|everyone)\b", lambda m: f"<!{m[1]}>", text)
    return re.sub(r"(?<![\w<])#([\w-]+)", channel, re.sub(r"(?<![\w<])@([\w.-]+\w)", mention, text))


def thread_of(call: SlackCall, channel: str) -> str | None:
    """The thread's first message; a reply's own ts leads to it."""
    if not call.has("thread_ts"):
        return None
    ts = call.text("thread_ts")
    if not TS.fullmatch(ts):
        raise SlackError("invalid_thread_ts")
    parent = call.store.one("SELECT ts, thread_ts FROM messages WHERE channel = ? AND ts = ?", channel, ts)
    if parent is None:
        raise SlackError("thread_not_found")
    return str(parent["thread_ts"] or parent["ts"])


def author(call: SlackCall, customize: bool = True) -> dict[str, Any]:
    if not call.is_bot:
        return {}
    columns: dict[str, Any] = {"bot_id": call.me["bot_id"]}
    named = {name: call.text(name) for name in ("username", "icon_emoji", "icon_url") if call.has(name)}
    if named and customize:
        call.need_scope("chat:write.customize")
        columns |= {"username": named.get("username"), "subtype": "bot_message" if "username" in named else None}
        icons = {}
        if "icon_emoji" in named:
            icons["emoji"] = named["icon_emoji"]
        if "icon_url" in named:
            icons["image_48"] = named["icon_url"]
        columns["icons"] = icons or None
    return columns


def deliver(
    call: SlackCall, channel: Row, content: dict[str, Any], thread: str | None, broadcast: bool, **more: Any
) -> Row:
    """Puts it into the channel; a thread's first message becomes one by its first reply."""
    if broadcast and thread and not more.get("subtype"):
        more["subtype"] = "thread_broadcast"
    row = post(
        call.store,
        channel["id"],
        call.user,
        content["text"],
        thread_ts=thread,
        broadcast=int(bool(broadcast and thread)),
        **{k: v for k, v in content.items() if k != "text"},
        **more,
    )
    if thread:
        call.store.run("UPDATE messages SET thread_ts = ts WHERE channel = ? AND ts = ?", channel["id"], thread)
    call.store.run(
        "UPDATE members SET last_read = ?, is_open = 1 WHERE channel = ? AND user = ?",
        row["ts"],
        channel["id"],
        call.user,
    )
    return row


@method("chat.postMessage", "chat:write", "chat:write:user", "chat:write:bot")
def post_message(call: SlackCall) -> Answer:
    channel = channel_to_write(call)
    content = content_of(call)
    thread = thread_of(call, channel["id"])
    row = deliver(call, channel, content, thread, call.flag("reply_broadcast"), **author(call))
    if not call.has("text") and not call.has("markdown_text"):
        call.warnings.append("missing_text_in_message")
    return {"channel": channel["id"], "ts": row["ts"], "message": show_message(call, row)}


@method("chat.meMessage", "chat:write")
def me_message(call: SlackCall) -> Answer:
    channel = channel_to_write(call)
    text = call.need("text", "no_text")
    row = deliver(call, channel, {"text": text}, None, False, subtype="me_message", **author(call, False))
    return {"channel": channel["id"], "ts": row["ts"]}


@method("chat.postEphemeral", "chat:write")
def post_ephemeral(call: SlackCall) -> Answer:
    channel = find_channel(call)
    writable(call, channel)
    user = call.need("user")
    content = content_of(call)
    if not is_member(call.store, channel["id"], user):
        raise SlackError("user_not_in_channel")
    ts = new_ts(call.store, channel["id"])
    while call.store.one("SELECT 1 FROM ephemeral_messages WHERE channel = ? AND ts = ?", channel["id"], ts):
        ts = f"{ts[:-6]}{int(ts[-6:]) + 1:06d}"
    call.store.insert(
        "ephemeral_messages",
        channel=channel["id"],
        ts=ts,
        user=user,
        sender=call.user,
        text=content["text"],
        blocks=content["blocks"],
    )
    return {"message_ts": ts}


@method("chat.update", "chat:write")
def update(call: SlackCall) -> Answer:
    channel = find_channel(call)
    row = find_message(call, channel["id"], call.need("ts"))
    if row["user"] != call.user:
        raise SlackError("cant_update_message")
    if row["subtype"] not in (None, "bot_message", "thread_broadcast", "me_message"):
        raise SlackError("cant_update_message")
    if channel["is_archived"]:
        raise SlackError("is_archived")
    content = content_of(call)
    changes = {name: value for name, value in content.items() if value is not None or call.has(name) or name == "text"}
    if call.has("text") and not call.has("blocks"):
        changes["blocks"] = None
    if call.has("text") and not call.has("attachments"):
        changes["attachments"] = None
    if not call.has("text") and not call.has("markdown_text"):
        changes.pop("text")
    if call.has("file_ids"):
        changes["files"] = call.listed("file_ids")
    changes |= {"edited_user": call.user, "edited_ts": f"{call.now:010d}.000000"}
    call.store.update("messages", {"channel": channel["id"], "ts": row["ts"]}, **changes)
    new = find_message(call, channel["id"], row["ts"])
    return {"channel": channel["id"], "ts": new["ts"], "text": new["text"], "message": show_message(call, new)}


@method("chat.delete", "chat:write")
def delete(call: SlackCall) -> Answer:
    channel = find_channel(call)
    row = find_message(call, channel["id"], call.need("ts"))
    own = row["user"] == call.user
    if not own and not (call.me["is_admin"] and not call.is_bot):
        raise SlackError("cant_delete_message")
    key = (channel["id"], row["ts"])
    for table in ("reactions", "pins", "stars"):
        call.store.run(f"DELETE FROM {table} WHERE channel = ? AND ts = ?", *key)
    call.store.run("DELETE FROM file_shares WHERE channel = ? AND ts = ?", *key)
    replies = call.store.value(
        "SELECT count(*) FROM messages WHERE channel = ? AND thread_ts = ? AND ts != thread_ts", *key
    )
    if replies:
        gone = {"text": "This message was deleted.", "subtype": "tombstone", "user": "USLACKBOT"}
        blank = dict.fromkeys(("blocks", "attachments", "files", "bot_id", "username", "icons", "metadata"))
        call.store.update("messages", {"channel": channel["id"], "ts": row["ts"]}, **gone, **blank, edited_ts=None)
    else:
        call.store.run("DELETE FROM messages WHERE channel = ? AND ts = ?", *key)
        _close_empty_thread(call, row)
    return {"channel": channel["id"], "ts": row["ts"]}


def _close_empty_thread(call: SlackCall, row: Row) -> None:
    """With its last reply gone, a message is no thread any more; a tombstone without replies goes too."""
    thread = row["thread_ts"]
    if not thread or thread == row["ts"]:
        return
    left = call.store.value(
        "SELECT count(*) FROM messages WHERE channel = ? AND thread_ts = ? AND ts != thread_ts", row["channel"], thread
    )
    if left == 0:
        call.store.run("UPDATE messages SET thread_ts = NULL WHERE channel = ? AND ts = ?", row["channel"], thread)
        call.store.run(
            "DELETE FROM messages WHERE channel = ? AND ts = ? AND subtype = 'tombstone'", row["channel"], thread
        )


@method("chat.getPermalink")
def get_permalink(call: SlackCall) -> Answer:
    channel = find_channel(call)
    row = find_message(call, channel["id"], call.need("message_ts"))
    return {"channel": channel["id"], "permalink": permalink(call, row)}


@method("chat.unfurl", "links:write")
def unfurl(call: SlackCall) -> Answer:
    channel = find_channel(call)
    row = find_message(call, channel["id"], call.need("ts"), "cannot_unfurl_url")
    unfurls = call.structure("unfurls", "invalid_unfurls_format")
    if not isinstance(unfurls, dict) or not all(isinstance(one, dict) for one in unfurls.values()):
        raise SlackError("missing_unfurls" if not unfurls else "invalid_unfurls_format")
    shown = [{"id": n, "from_url": url, **one} for n, (url, one) in enumerate(unfurls.items(), 1)]
    call.store.update("messages", {"channel": channel["id"], "ts": row["ts"]}, attachments=shown)
    return {}
