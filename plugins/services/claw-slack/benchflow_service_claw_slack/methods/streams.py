"""chat.startStream, appendStream, stopStream: an app's answer that grows in a thread."""

from __future__ import annotations

from typing import Any

from benchflow_claw_kit.store import Row

from benchflow_service_claw_slack.blocks import blocks_of
from benchflow_service_claw_slack.call import SlackCall, SlackError, bad_arguments
from benchflow_service_claw_slack.methods.chat import MAX_TEXT, author, deliver, thread_of, writable
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.channels import find_channel
from benchflow_service_claw_slack.objects.messages import find_message, show_message

__all__: list[str] = []

Answer = dict[str, Any]


def _said(call: SlackCall, needed: bool) -> str:
    """Return the text of a streamed message: `markdown_text` plus its chunks."""
    chunks = call.structure("chunks", "invalid_chunks") or []
    if not isinstance(chunks, list) or not all(isinstance(one, dict) for one in chunks):
        raise SlackError("invalid_chunks")
    words = [str(one.get("text", "")) for one in chunks if one.get("type") == "markdown_text"]
    text = call.text("markdown_text") + "".join(words)
    if needed and not text and not chunks:
        raise bad_arguments("missing required field: markdown_text")
    if len(call.text("markdown_text")) > 12_000:
        raise SlackError("msg_too_long")
    return text


@method("chat.startStream", "chat:write")
def start(call: SlackCall) -> Answer:
    channel = find_channel(call)
    writable(call, channel)
    if not call.is_bot:
        raise SlackError("not_allowed_token_type")
    if not call.has("thread_ts"):
        raise SlackError("invalid_thread_ts")
    thread = thread_of(call, channel["id"])
    row = deliver(call, channel, {"text": _said(call, False)}, thread, False, **author(call))
    call.store.insert("streams", channel=channel["id"], ts=row["ts"])
    return {"channel": channel["id"], "ts": row["ts"]}


def _streaming(call: SlackCall) -> Row:
    channel = find_channel(call)
    row = find_message(call, channel["id"], call.need("ts"))
    if row["user"] != call.user:
        raise SlackError("message_not_owned_by_app")
    if call.store.one("SELECT 1 FROM streams WHERE channel = ? AND ts = ?", channel["id"], row["ts"]) is None:
        raise SlackError("message_not_in_streaming_state")
    return row


def _append(call: SlackCall, row: Row, needed: bool, **columns: Any) -> None:
    text = row["text"] + _said(call, needed)
    if len(text) > MAX_TEXT:
        raise SlackError("msg_too_long")
    call.store.update("messages", {"channel": row["channel"], "ts": row["ts"]}, text=text, **columns)


@method("chat.appendStream", "chat:write")
def append(call: SlackCall) -> Answer:
    row = _streaming(call)
    _append(call, row, True)
    return {"channel": row["channel"], "ts": row["ts"]}


@method("chat.stopStream", "chat:write")
def stop(call: SlackCall) -> Answer:
    row, blocks = _streaming(call), blocks_of(call)
    columns: Answer = {"blocks": blocks} if blocks else {}
    if (metadata := call.structure("metadata", "invalid_metadata_format")) is not None:
        columns["metadata"] = metadata
    _append(call, row, False, **columns)
    call.store.delete("streams", channel=row["channel"], ts=row["ts"])
    new = find_message(call, row["channel"], row["ts"])
    return {"channel": row["channel"], "ts": row["ts"], "message": show_message(call, new)}
