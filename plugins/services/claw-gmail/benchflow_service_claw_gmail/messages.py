"""users.messages and users.getProfile."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from benchflow_claw_kit import BadToken, Call, Row, decode_base64url, forbidden, not_found, read_token, write_token

from benchflow_service_claw_gmail import delivery, mime
from benchflow_service_claw_gmail.contract import api
from benchflow_service_claw_gmail.mailbox import Mailbox, invalid_argument, listed, mailbox_of
from benchflow_service_claw_gmail.search import parse_query

MAX_PAGE = 500
MAX_BATCH = 1000
METADATA = "https://www.googleapis.com/auth/gmail.metadata"


@api.method("gmail.users.getProfile")
def get_profile(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    counts = box.store.one(
        "SELECT count(*) AS messages, count(DISTINCT thread_id) AS threads FROM messages WHERE user = ?", box.user
    )
    assert counts is not None
    return {
        "emailAddress": box.user,
        "messagesTotal": counts["messages"],
        "threadsTotal": counts["threads"],
        "historyId": str(box.history_id),
    }


# -- listing


def page_size(call: Call, default: int = 100, most: int = MAX_PAGE) -> int:
    size = call.get("maxResults", 0)
    if size < 0:
        raise invalid_argument("Invalid maxResults")
    return min(size, most) if size else default


def matching(call: Call, box: Mailbox, only: tuple[str, ...] = ()) -> list[Row]:
    """The messages that a list call asks for, newest first."""
    labels = [*call.get("labelIds", []), *only]
    box.check_labels(labels, changing=False)
    text = call.get("q", "")
    if text and call.principal.scopes is not None and call.principal.scopes <= {METADATA}:
        raise forbidden("Metadata scope does not support 'q' parameter")
    rows = box.rows(labels)
    query = parse_query(text, box.search_box()) if text.strip() else None
    everywhere = call.get("includeSpamTrash") or {"SPAM", "TRASH"} & set(labels) or (query and query.everywhere)
    if not everywhere:
        rows = [row for row in rows if '"TRASH"' not in row["labels"] and '"SPAM"' not in row["labels"]]
    return [row for row in rows if query.test(row)] if query else rows


def page_of(call: Call, box: Mailbox, rows: list[Row], key: Callable[[Row], Any]) -> tuple[list[Row], dict[str, Any]]:
    """A page, and what goes beside it. The token holds the place of the last row, so that new mail moves nothing."""
    question = [
        box.user,
        call.method.id,
        call.get("q", ""),
        call.get("labelIds", []),
        call.get("includeSpamTrash", False),
    ]
    total = len(rows)
    token = call.get("pageToken")
    if token:
        try:
            after = read_token(box.store.secret, token, question)["after"]
        except (BadToken, KeyError):
            raise invalid_argument("Invalid pageToken") from None
        rows = [row for row in rows if list(key(row)) < after]
    size = page_size(call)
    beside: dict[str, Any] = {}
    if len(rows) > size:
        beside["nextPageToken"] = write_token(box.store.secret, {"after": list(key(rows[size - 1]))}, question)
    beside["resultSizeEstimate"] = total
    return rows[:size], beside


def place(row: Row) -> tuple[int, str]:
    return (row["internal_date"], row["id"])


@api.method("gmail.users.messages.list")
def list_messages(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    rows, beside = page_of(call, box, matching(call, box), place)
    return {**listed([brief(row) for row in rows], "messages"), **beside}


def brief(row: Row) -> dict[str, Any]:
    return {"id": row["id"], "threadId": row["thread_id"]}


# -- reading


def short(row: Row) -> dict[str, Any]:
    """What a change answers."""
    return {**brief(row), "labelIds": json.loads(row["labels"])}


def whole(box: Mailbox, row: Row, form: str = "full", names: list[str] | None = None) -> dict[str, Any]:
    value: dict[str, Any] = {
        **short(row),
        "snippet": row["snippet"],
        "sizeEstimate": row["size"],
        "historyId": str(row["history_id"]),
        "internalDate": str(row["internal_date"]),
    }
    if not value["labelIds"]:
        del value["labelIds"]
    if form == "minimal":
        return value
    raw = box.message(row["id"], "raw")["raw"]
    if form == "raw":
        return {**value, "raw": base64.urlsafe_b64encode(raw).decode()}
    root = mime.parse(raw)
    chosen = frozenset(name.lower() for name in names) if names else None
    value["payload"] = mime.part_json(root, lambda part: attachment_id(row["id"], part), form == "full", chosen)
    return value


def wanted_format(call: Call) -> str:
    form = call.get("format", "full")
    scopes = call.principal.scopes
    if form in ("full", "raw") and scopes is not None and scopes <= {METADATA}:
        raise forbidden(f"Metadata scope doesn't allow format {form.upper()}")
    return str(form)


@api.method("gmail.users.messages.get")
def get_message(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    return whole(box, box.message(call["id"]), wanted_format(call), call.get("metadataHeaders"))


def attachment_id(message_id: str, part: mime.MimePart) -> str:
    text = f"{message_id}:{part.part_id}"
    return "ANGjdJ" + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@api.method("gmail.users.messages.attachments.get")
def get_attachment(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    row = box.message(call["messageId"], "id, raw")
    for part in mime.parse(row["raw"]).walk():
        if part.attached and attachment_id(row["id"], part) == call["id"]:
            data = base64.urlsafe_b64encode(part.content).decode()
            return {"attachmentId": call["id"], "size": len(part.content), "data": data}
    raise invalid_argument("Invalid attachment token") if not call["id"].startswith("ANGjdJ") else not_found()


# -- changing


def raw_of(call: Call, message: dict[str, Any] | None = None) -> bytes:
    """The RFC 822 bytes: uploaded, or in `raw`."""
    if call.media is not None:
        raw = call.media
    else:
        raw = decode_base64url((call.body if message is None else message).get("raw", "")) or b""
    if not raw.strip():
        raise invalid_argument("'raw' RFC822 payload message string or uploading message via /upload/* URL required")
    if len(raw) > (call.method.max_upload or len(raw)):
        raise call.service.too_large
    return raw


@api.method("gmail.users.messages.send")
def send_message(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    return short(delivery.send(box, raw_of(call), call.body.get("threadId") or None))


@api.method("gmail.users.messages.insert")
def insert_message(call: Call) -> dict[str, Any]:
    return _put(call, call.get("internalDateSource", "receivedTime"), tuple(call.body.get("labelIds", ())))


@api.method("gmail.users.messages.import")
def import_message(call: Call) -> dict[str, Any]:
    labels = tuple(call.body.get("labelIds", ())) or ("INBOX", "UNREAD")
    return _put(call, call.get("internalDateSource", "dateHeader"), labels)


def _put(call: Call, source: str, labels: tuple[str, ...]) -> dict[str, Any]:
    box = mailbox_of(call)
    raw = raw_of(call)
    box.check_labels(labels, changing=False)
    root = mime.parse(raw)
    thread = call.body.get("threadId") or None
    if thread and not box.joins(thread, root):
        thread = None
    date = mime.date_ms(root.header("date")) if source == "dateHeader" else None
    row = box.add(raw, labels, thread, date)
    if call.get("deleted"):
        box.remove(row)
    return short(row)


@api.method("gmail.users.messages.modify")
def modify_message(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    row = box.message(call["id"])
    add, remove = label_changes(call, box)
    return short(box.relabel(row, add, remove))


def label_changes(call: Call, box: Mailbox) -> tuple[list[str], list[str]]:
    add, remove = call.body.get("addLabelIds", []), call.body.get("removeLabelIds", [])
    if not add and not remove:
        raise invalid_argument("No label add or removes specified")
    box.check_labels(add, remove)
    if set(add) & set(remove):
        raise invalid_argument("Cannot both add and remove the same label")
    return add, remove


@api.method("gmail.users.messages.trash")
def trash_message(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    return short(box.relabel(box.message(call["id"]), ["TRASH"], []))


@api.method("gmail.users.messages.untrash")
def untrash_message(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    return short(box.relabel(box.message(call["id"]), [], ["TRASH"]))


@api.method("gmail.users.messages.delete")
def delete_message(call: Call) -> None:
    box = mailbox_of(call)
    box.remove(box.message(call["id"]))


def _batch_ids(call: Call) -> list[str]:
    ids = list(dict.fromkeys(call.body.get("ids", [])))
    if not ids:
        raise invalid_argument("No message ids specified")
    if len(ids) > MAX_BATCH:
        raise invalid_argument(f"Too many message ids: at most {MAX_BATCH}")
    return ids


@api.method("gmail.users.messages.batchModify")
def batch_modify(call: Call) -> None:
    box = mailbox_of(call)
    add, remove = label_changes(call, box)
    for row in _known(box, _batch_ids(call)):
        box.relabel(row, add, remove)


@api.method("gmail.users.messages.batchDelete")
def batch_delete(call: Call) -> None:
    """Ids that do not exist (or never did) are passed over, as documented."""
    box = mailbox_of(call)
    for row in _known(box, _batch_ids(call)):
        box.remove(row)


def _known(box: Mailbox, ids: list[str]) -> list[Row]:
    rows = [
        box.store.one("SELECT id, thread_id, labels FROM messages WHERE user = ? AND id = ?", box.user, id)
        for id in ids
    ]
    return [row for row in rows if row]
