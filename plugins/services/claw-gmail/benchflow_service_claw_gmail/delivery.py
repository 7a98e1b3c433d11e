"""Sending: from a draft or raw bytes into the sender's SENT and every local recipient's INBOX, filters and all."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from email.utils import format_datetime, formataddr
from typing import Any

from benchflow_claw_kit import Row, Store

from benchflow_service_claw_gmail import mime
from benchflow_service_claw_gmail.mailbox import Mailbox, invalid_argument
from benchflow_service_claw_gmail.search import Mailbox as SearchBox
from benchflow_service_claw_gmail.search import parse_query

__all__ = ["compose", "deliver", "send"]

MAX_RECIPIENTS = 500


def send(box: Mailbox, raw: bytes, thread_id: str | None, labels: tuple[str, ...] = ()) -> Row:
    raw, root = completed(box, raw)
    recipients = recipients_of(root)
    if thread_id is not None and not box.joins(thread_id, root):
        thread_id = None
    row = box.add(raw, {"SENT", *labels}, thread_id)
    public = _without_bcc(raw)
    for address in recipients:
        other = box.store.one("SELECT email FROM users WHERE email = ?", address)
        if other:
            deliver(box.store, address, public, root, row if address == box.user else None)
    return row


def recipients_of(root: mime.MimePart) -> list[str]:
    for name in ("To", "Cc", "Bcc"):
        value = root.header(name)
        if value.strip() and not mime.addresses(value) and "undisclosed" not in value.lower():
            raise invalid_argument(f"Invalid {name} header")
    found = mime.addresses(root.header("to"), root.header("cc"), root.header("bcc"))
    if not found:
        raise invalid_argument("Recipient address required")
    unique = list(dict.fromkeys(address for _, address in found))
    if len(unique) > MAX_RECIPIENTS:
        raise invalid_argument("Too many recipients")
    return unique


def completed(box: Mailbox, raw: bytes) -> tuple[bytes, mime.MimePart]:
    """With the headers that Gmail puts itself: a From that is ours, a Date, a Message-ID."""
    root = mime.parse(raw)
    head: list[str] = []
    sender = mime.addresses(root.header("from"))
    allowed = {row["id"] for row in box.store.all("SELECT id FROM send_as WHERE user = ?", box.user)}
    if not sender or sender[0][1] not in allowed:
        raw = _drop_header(raw, b"from")
        name = box.store.value("SELECT name FROM users WHERE email = ?", box.user) or ""
        head.append("From: " + formataddr((name, box.user)))
    if not root.header("date"):
        head.append("Date: " + format_datetime(datetime.fromtimestamp(box.store.now_ms() / 1000, UTC)))
    if not root.header("message-id"):
        head.append(f"Message-ID: <CA{box.store.new_id('rfc822', 40)}@mail.gmail.com>")
    if head:
        raw = "".join(line + "\r\n" for line in head).encode() + raw
        root = mime.parse(raw)
    return raw, root


def _drop_header(raw: bytes, name: bytes) -> bytes:
    """The bytes without this header of the outermost message, continuation lines included."""
    found = re.search(rb"\r?\n\r?\n", raw)
    head, rest = (raw[: found.start() + 1], raw[found.start() + 1 :]) if found else (raw, b"")
    return re.sub(rb"(?im)^" + name + rb"[ \t]*:.*(?:\n[ \t].*)*\n?", b"", head) + rest


def _without_bcc(raw: bytes) -> bytes:
    return _drop_header(raw, b"bcc")


def deliver(store: Store, user: str, raw: bytes, root: mime.MimePart, own: Row | None = None) -> None:
    """Into one local mailbox. A message to oneself is one message with both labels."""
    box = Mailbox(store, user)
    if own is not None:
        box.relabel(own, ["INBOX", "UNREAD"], [])
        return
    row = box.add(raw, {"INBOX", "UNREAD"})
    _apply_filters(box, row, raw)
    _auto_forward(box, row, raw)
    _vacation_reply(box, row, root)


def _apply_filters(box: Mailbox, row: Row, raw: bytes) -> None:
    search = box.search_box()
    known = box.label_ids()
    for entry in box.store.all("SELECT data FROM filters WHERE user = ? ORDER BY id", box.user):
        data = json.loads(entry["data"])
        if not matches(data.get("criteria", {}), row, search):
            continue
        action = data.get("action", {})
        add = [label for label in action.get("addLabelIds", []) if label in known]
        row.update(box.relabel(row, add, action.get("removeLabelIds", [])))
        if action.get("forward"):
            _forward(box, raw, action["forward"])


def matches(criteria: dict[str, Any], row: Row, search: SearchBox) -> bool:
    """A filter's criteria, all of them."""
    for name in ("from", "to", "subject"):
        if criteria.get(name) and not parse_query(f"{name}:({criteria[name]})", search).test(row):
            return False
    if criteria.get("query") and not parse_query(criteria["query"], search).test(row):
        return False
    if criteria.get("negatedQuery") and parse_query(criteria["negatedQuery"], search).test(row):
        return False
    if criteria.get("hasAttachment") and row["filenames"] == "[]":
        return False
    if "size" in criteria and criteria.get("sizeComparison") in ("smaller", "larger"):
        larger = row["size"] > criteria["size"]
        return bool(larger == (criteria["sizeComparison"] == "larger"))
    return True


def _forward(box: Mailbox, raw: bytes, address: str) -> None:
    target = address.lower()
    if target == box.user or f"X-Forwarded-For: {box.user}".encode() in raw:
        return
    if box.store.one("SELECT email FROM users WHERE email = ?", target):
        marked = f"X-Forwarded-To: {target}\r\nX-Forwarded-For: {box.user}\r\n".encode() + raw
        deliver(box.store, target, marked, mime.parse(marked))


def _auto_forward(box: Mailbox, row: Row, raw: bytes) -> None:
    data = setting(box, "autoForwarding")
    if not data.get("enabled"):
        return
    _forward(box, raw, data["emailAddress"])
    after = {"archive": ([], ["INBOX"]), "trash": (["TRASH"], []), "markRead": ([], ["UNREAD"])}
    add, remove = after.get(data.get("disposition", ""), ([], []))
    box.relabel(row, add, remove)


def _vacation_reply(box: Mailbox, row: Row, root: mime.MimePart) -> None:
    data = setting(box, "vacation")
    sender = mime.addresses(root.header("from"))
    if not data.get("enableAutoReply") or not sender or root.header("auto-submitted") or root.header("list-id"):
        return
    now = box.store.now_ms()
    if not int(data.get("startTime", 0)) <= now < int(data.get("endTime", 2**63)):
        return
    address = sender[0][1]
    if data.get("restrictToDomain") and address.rpartition("@")[2] != box.user.rpartition("@")[2]:
        return
    if box.store.count(f"vacation:{box.user}:{address}") > 1:
        return
    headers = {"Auto-Submitted": "auto-replied", "In-Reply-To": row["rfc822_id"], "References": row["rfc822_id"]}
    subject = data.get("responseSubject") or f"Re: {row['subject']}"
    html = data.get("responseBodyHtml")
    text = html or data.get("responseBodyPlainText", "")
    send(box, compose(box.user, address, subject, text, headers, html=bool(html)), None)


def setting(box: Mailbox, name: str) -> dict[str, Any]:
    row = box.store.one("SELECT data FROM settings WHERE user = ? AND name = ?", box.user, name)
    return json.loads(row["data"]) if row else {}


def compose(
    sender: str,
    to: str,
    subject: str,
    text: str,
    headers: dict[str, str] | None = None,
    html: bool = False,
    attachments: list[tuple[str, str, bytes]] | None = None,
) -> bytes:
    """The bytes of a message. Attachments are (file name, type, content)."""
    from email.message import EmailMessage
    from email.policy import SMTP

    message = EmailMessage(policy=SMTP)
    given = {"From": sender, "To": to, "Subject": subject, **(headers or {})}
    for name, value in given.items():
        if value:
            message[name] = " ".join(str(value).split())
    message.set_content(text, subtype="html" if html else "plain")
    for name, kind, content in attachments or []:
        maintype, _, subtype = kind.partition("/")
        message.add_attachment(content, maintype=maintype, subtype=subtype or "octet-stream", filename=name)
    if message.is_multipart():
        message.set_boundary("000000000000" + _digest(subject + text))
    return message.as_bytes()


def _digest(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:20]
