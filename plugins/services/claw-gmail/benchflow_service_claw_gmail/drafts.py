"""users.drafts."""

from __future__ import annotations

from typing import Any

from benchflow_claw_kit import Call, Row, not_found

from benchflow_service_claw_gmail import delivery
from benchflow_service_claw_gmail.contract import api
from benchflow_service_claw_gmail.mailbox import Mailbox, invalid_argument, listed, mailbox_of
from benchflow_service_claw_gmail.messages import brief, matching, page_of, place, raw_of, short, wanted_format, whole


def _draft(box: Mailbox, id: str) -> Row:
    row = box.store.one("SELECT id, message_id FROM drafts WHERE user = ? AND id = ?", box.user, id)
    if row is None:
        raise not_found()
    return row


def _stored(call: Call, box: Mailbox, thread_id: str | None = None) -> Row:
    message = call.body.get("message", {})
    raw, root = delivery.completed(box, raw_of(call, message))
    thread = message.get("threadId") or thread_id
    if thread and not box.joins(thread, root):
        thread = None
    return box.add(raw, ["DRAFT"], thread)


@api.method("gmail.users.drafts.create")
def create_draft(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    row = _stored(call, box)
    id = "r" + box.store.new_id("draft", 18, "0123456789").lstrip("0")
    box.store.insert("drafts", user=box.user, id=id, message_id=row["id"])
    return {"id": id, "message": short(row)}


@api.method("gmail.users.drafts.update")
def update_draft(call: Call) -> dict[str, Any]:
    """The draft keeps its id, its message does not."""
    box = mailbox_of(call)
    draft = _draft(box, call["id"])
    old = box.message(draft["message_id"])
    thread = old["thread_id"] if len(box.thread(old["thread_id"])) > 1 else None
    row = _stored(call, box, thread)
    box.store.update("drafts", {"user": box.user, "id": draft["id"]}, message_id=row["id"])
    box.remove(old)
    return {"id": draft["id"], "message": short(row)}


@api.method("gmail.users.drafts.get")
def get_draft(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    draft = _draft(box, call["id"])
    return {"id": draft["id"], "message": whole(box, box.message(draft["message_id"]), wanted_format(call))}


@api.method("gmail.users.drafts.list")
def list_drafts(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    drafts = {
        row["message_id"]: row["id"]
        for row in box.store.all("SELECT id, message_id FROM drafts WHERE user = ?", box.user)
    }
    found = [row for row in matching(call, box, ("DRAFT",)) if row["id"] in drafts]
    rows, beside = page_of(call, box, found, place)
    return {**listed([{"id": drafts[row["id"]], "message": brief(row)} for row in rows], "drafts"), **beside}


@api.method("gmail.users.drafts.delete")
def delete_draft(call: Call) -> None:
    box = mailbox_of(call)
    box.remove(box.message(_draft(box, call["id"])["message_id"]))


@api.method("gmail.users.drafts.send")
def send_draft(call: Call) -> dict[str, Any]:
    """The draft is gone, a new message is in SENT. A body with its own `message` is sent instead of what was stored."""
    box = mailbox_of(call)
    id = call.body.get("id")
    if not id and (call.media is not None or call.body.get("message")):
        return short(delivery.send(box, raw_of(call, call.body.get("message", {})), None))
    if not id:
        raise invalid_argument("Invalid draft")
    draft = _draft(box, id)
    old = box.message(draft["message_id"])
    message = call.body.get("message", {})
    newer = call.media is not None or message.get("raw")
    raw = raw_of(call, message) if newer else box.message(old["id"], "raw")["raw"]
    thread = old["thread_id"] if len(box.thread(old["thread_id"])) > 1 else None
    delivery.recipients_of(delivery.completed(box, raw)[1])
    box.remove(old)
    return short(delivery.send(box, raw, message.get("threadId") or thread))
