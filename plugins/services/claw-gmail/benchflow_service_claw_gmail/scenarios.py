"""Worlds: a task's own scenario file, and the built-in ones, which are made of the same shape."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from random import Random
from typing import Any

from benchflow_claw_kit import Store
from benchflow_claw_kit.shape import listed, only, when_ms

from benchflow_service_claw_gmail import worlds
from benchflow_service_claw_gmail.delivery import compose
from benchflow_service_claw_gmail.mailbox import SYSTEM_LABELS, Mailbox, create_user

__all__ = ["SCENARIOS", "load"]

_USER = ("email", "name", "labels", "filters", "settings", "forwarding_addresses", "delegates", "aliases", "signature")
_MESSAGE = (
    *("user", "from", "to", "cc", "bcc", "subject", "body", "html", "date", "labels", "thread", "attachments"),
    *("headers", "raw", "draft", "message_id"),
)


def load(store: Store, data: Mapping[str, Any]) -> None:
    """`{"now", "users": [...], "messages": [...]}`; README.md describes each."""
    only(data, "scenario", ("now", "users", "messages", "description"))
    users = listed(data.get("users", []), "users") or [{"email": "alex@example.com", "name": "Alex Morgan"}]
    for number, user in enumerate(users):
        _user(store, only(user, f"users[{number}]", _USER, ("email",)))
    first = str(users[0]["email"]).lower()
    threads: dict[tuple[str, str], tuple[str, list[str]]] = {}
    for number, message in enumerate(listed(data.get("messages", []), "messages")):
        where = f"messages[{number}]"
        _message(store, only(message, where, _MESSAGE), where, first, threads)


def _user(store: Store, user: Mapping[str, Any]) -> None:
    email = str(user["email"]).lower()
    create_user(store, email, str(user.get("name", "")))
    for label in user.get("labels", []):
        _label(store, email, label)
    box = Mailbox(store, email)
    for entry in user.get("filters", []):
        action = dict(entry.get("action", {}))
        for name in ("addLabelIds", "removeLabelIds"):
            if name in action:
                action[name] = [_label(store, email, label) for label in action[name]]
        id = "ANe1Bm" + store.new_id("filter", 26)
        store.insert(
            "filters", user=email, id=id, data={"id": id, "criteria": entry.get("criteria", {}), "action": action}
        )
    for name, value in user.get("settings", {}).items():
        store.insert("settings", user=email, name=name, data=value)
    for address in user.get("forwarding_addresses", []):
        entry = {"forwardingEmail": address, "verificationStatus": "accepted"}
        store.insert("forwarding_addresses", user=email, id=address.lower(), data=entry)
    for address in user.get("delegates", []):
        entry = {"delegateEmail": address, "verificationStatus": "accepted"}
        store.insert("delegates", user=email, id=address.lower(), data=entry)
    for address in user.get("aliases", []):
        entry = {"sendAsEmail": address, "displayName": "", "isPrimary": False, "isDefault": False}
        store.insert("send_as", user=email, id=address.lower(), data={**entry, "verificationStatus": "accepted"})
    if user.get("signature"):
        _sign(box, str(user["signature"]))


def _sign(box: Mailbox, signature: str) -> None:
    row = box.store.one("SELECT data FROM send_as WHERE user = ? AND id = ?", box.user, box.user)
    assert row is not None
    box.store.update(
        "send_as", {"user": box.user, "id": box.user}, data={**json.loads(row["data"]), "signature": signature}
    )


def _label(store: Store, user: str, name: str) -> str:
    """The id of a label by name; made if it is not there."""
    if name in SYSTEM_LABELS:
        return name
    row = store.one("SELECT id FROM labels WHERE user = ? AND name = ?", user, name)
    if row:
        return str(row["id"])
    id = f"Label_{store.count('label:' + user)}"
    store.insert(
        "labels",
        user=user,
        id=id,
        name=name,
        type="user",
        message_list_visibility="show",
        label_list_visibility="labelShow",
    )
    return id


def _message(
    store: Store,
    message: Mapping[str, Any],
    where: str,
    first: str,
    threads: dict[tuple[str, str], tuple[str, list[str]]],
) -> None:
    user = str(message.get("user", first)).lower()
    if store.one("SELECT email FROM users WHERE email = ?", user) is None:
        raise ValueError(f"{where}: no user {user!r}")
    box = Mailbox(store, user)
    now = store.now_ms()
    date = when_ms(message.get("date", "-1h"), now, where)
    key = (user, str(message.get("thread", "")))
    thread_id, earlier = threads.get(key, (None, [])) if key[1] else (None, [])
    raw, id = _raw(store, message, where, date, earlier)
    default = ["DRAFT"] if message.get("draft") else ["INBOX", "UNREAD"]
    labels = [_label(store, user, str(name)) for name in message.get("labels", default)]
    row = box.add(raw, labels, thread_id, date, quiet=True)
    if "DRAFT" in labels:
        draft = "r" + store.new_id("draft", 18, "123456789")
        store.insert("drafts", user=user, id=draft, message_id=row["id"])
    if key[1]:
        threads[key] = (row["thread_id"], [*earlier, id])


def _raw(store: Store, message: Mapping[str, Any], where: str, date: int, earlier: list[str]) -> tuple[bytes, str]:
    id = str(message.get("message_id") or f"<{store.new_id('rfc822', 24)}@mail.example.com>")
    if "raw" in message:
        return str(message["raw"]).encode(), id
    headers = {
        "Cc": _people(message.get("cc", "")),
        "Bcc": _people(message.get("bcc", "")),
        "Date": format_datetime(datetime.fromtimestamp(date / 1000, UTC)),
        "Message-ID": id,
        "In-Reply-To": earlier[-1] if earlier else "",
        "References": " ".join(earlier[-10:]),
        **{str(name): str(value) for name, value in message.get("headers", {}).items()},
    }
    text, html = message.get("body", ""), message.get("html")
    files = [_attachment(one, f"{where}.attachments[{i}]") for i, one in enumerate(message.get("attachments", []))]
    raw = compose(
        _people(message.get("from", "")),
        _people(message.get("to", "")),
        str(message.get("subject", "")),
        str(html if html is not None else text),
        headers,
        html=html is not None,
        attachments=files,
    )
    return raw, id


def _people(value: Any) -> str:
    return ", ".join(str(one) for one in value) if isinstance(value, list) else str(value)


def _attachment(value: Any, where: str) -> tuple[str, str, bytes]:
    entry = only(value, where, ("filename", "type", "content", "base64"), ("filename",))
    if "base64" in entry:
        content = base64.b64decode(str(entry["base64"]), validate=True)
    else:
        content = str(entry.get("content", "")).encode()
    return str(entry["filename"]), str(entry.get("type", "application/octet-stream")), content


def empty(store: Store, seed: int) -> None:
    """One user, no mail."""
    load(store, {})


def office(store: Store, seed: int) -> None:
    """A product lead's inbox: project threads, invoices, newsletters, a few drafts, some spam."""
    load(store, worlds.office(Random(seed)))


def support(store: Store, seed: int) -> None:
    """A support queue shared by two people: customers' tickets with attachments, labels and filters."""
    load(store, worlds.support(Random(seed)))


def archive(store: Store, seed: int) -> None:
    """Two thousand messages, for paging and load."""
    load(store, worlds.archive(Random(seed)))


SCENARIOS = {"empty": empty, "office": office, "support": support, "archive": archive}
