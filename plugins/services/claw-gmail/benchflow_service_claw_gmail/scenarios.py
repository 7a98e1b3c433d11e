"""Worlds: a task's own scenario file, and the built-in ones, which are made of the same shape."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from random import Random
from typing import Any

from benchflow_claw_kit import Store
from benchflow_claw_kit.shape import listed, only, when_ms
from benchflow_claw_kit.worlds import read_world, scenarios

from benchflow_service_claw_gmail.delivery import compose
from benchflow_service_claw_gmail.mailbox import SYSTEM_LABELS, Mailbox, create_user

__all__ = ["SCENARIOS", "load"]

_WORLDS = Path(__file__).with_name("worlds")
_WORDS = read_world(_WORLDS / "words.json")
_ME = "Alex Morgan <alex@example.com>"

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


def _person(random: Random, domain: str = "example.com") -> str:
    first, last = random.choice(_WORDS["people"]).split()[0], random.choice(_WORDS["people"]).split()[1]
    return f"{first} {last} <{first.lower()}.{last.lower()}@{domain}>"


def _thread(random: Random, number: int) -> list[dict[str, Any]]:
    project = _WORDS["projects"][number % len(_WORDS["projects"])]
    topic, text = _WORDS["topics"][(number * 3) % len(_WORDS["topics"])]
    other, copied = _person(random), _person(random)
    subject, age = f"{project}: {topic}", random.randint(30, 700)
    messages: list[dict[str, Any]] = []
    for turn in range(random.randint(1, 4)):
        mine = turn % 2 == 1
        messages.append(
            {
                "from": _ME if mine else other,
                "to": other if mine else _ME,
                "cc": copied if number % 3 == 0 else "",
                "subject": subject if turn == 0 else f"Re: {subject}",
                "body": text if turn == 0 else random.choice(_WORDS["answers"]),
                "date": f"-{age - turn * 5}h",
                "thread": f"thread-{number}",
                "labels": ["SENT"]
                if mine
                else ["INBOX", *(["UNREAD"] if random.random() < 0.4 else []), f"Projects/{project}"],
            }
        )
    if number % 4 == 0:
        rows = "\n".join(f"{name},{random.randint(1000, 9000)}" for name in ("design", "build", "test"))
        messages[0]["attachments"] = [
            {"filename": f"{project.lower()}-budget.csv", "type": "text/csv", "content": f"item,eur\n{rows}\n"}
        ]
    return messages


def _invoice(random: Random, number: int) -> dict[str, Any]:
    vendor = random.choice(_WORDS["vendors"])
    total = f"{random.randint(40, 2400)}.{random.randint(0, 99):02d}"
    name = f"invoice-{2026000 + number}.pdf"
    return {
        "from": f"{vendor} <billing@{vendor.split()[0].lower()}.example>",
        "to": _ME,
        "subject": f"Invoice {2026000 + number} from {vendor}",
        "body": f"Your invoice over EUR {total} is attached. It is due in {random.choice((7, 14, 30))} days.",
        "date": f"-{random.randint(2, 60)}d",
        "labels": ["INBOX", "CATEGORY_UPDATES", *(["UNREAD"] if number % 2 else ["Finance"])],
        "attachments": [
            {"filename": name, "type": "application/pdf", "content": f"%PDF-1.4\n% total EUR {total}\n%%EOF\n"}
        ],
    }


def _newsletter(random: Random, number: int) -> dict[str, Any]:
    title = random.choice(_WORDS["newsletters"])
    return {
        "from": f"{title} <hello@{title.split()[-1].lower()}.example>",
        "to": _ME,
        "subject": f"{title} #{140 + number}",
        "html": f"<h1>{title}</h1><p>This week: {random.choice(_WORDS['topics'])[0]}, and what we learned.</p>",
        "date": f"-{number * 7 + 1}d",
        "labels": ["INBOX", "CATEGORY_PROMOTIONS", "UNREAD"],
        "headers": {
            "List-Unsubscribe": "<https://news.example/unsubscribe>",
            "List-Id": f"<{title.split()[-1].lower()}.example>",
        },
    }


def _spam(random: Random, number: int) -> dict[str, Any]:
    return {
        "from": f"Prize Office <win{number}@lucky.example>",
        "to": _ME,
        "subject": random.choice(_WORDS["spam"]),
        "body": "Send your bank details to receive your prize today.",
        "date": f"-{random.randint(1, 20)}d",
        "labels": ["SPAM", "UNREAD"],
    }


def empty(random: Random) -> dict[str, Any]:
    """One user, no mail."""
    return {}


def office(random: Random) -> dict[str, Any]:
    """A product lead's inbox: project threads, invoices, newsletters, a few drafts, some spam."""
    world = read_world(_WORLDS / "office.json")
    messages = [message for number in range(14) for message in _thread(random, number)]
    messages += [_invoice(random, number) for number in range(8)]
    messages += [_newsletter(random, number) for number in range(6)]
    messages += [_spam(random, number) for number in range(4)]
    messages += world["messages"]
    for number in range(2):
        other = _person(random)
        messages.append(
            {
                "from": _ME,
                "to": other,
                "subject": f"Draft {number + 1}",
                "body": "Hello,\n\n",
                "date": "-1d",
                "draft": True,
            }
        )
    return {"users": world["users"], "messages": messages}


def support(random: Random) -> dict[str, Any]:
    """A support queue shared by two people: customers' tickets with attachments, labels and filters."""
    team = "Support <support@example.com>"
    messages: list[dict[str, Any]] = []
    for number in range(40):
        title, text = _WORDS["problems"][number % len(_WORDS["problems"])]
        customer = _person(random, random.choice(("mail.example", "post.example", "inbox.example")))
        ticket, age = 4100 + number, random.randint(3, 400)
        urgent = random.random() < 0.2
        first: dict[str, Any] = {
            "from": customer,
            "to": team,
            "subject": f"{'URGENT: ' if urgent else ''}{title} [#{ticket}]",
            "body": f"{text}\n\nOrder {random.randint(10000, 99999)}\n{customer.split(' <')[0]}",
            "date": f"-{age}h",
            "thread": f"ticket-{ticket}",
            "labels": ["INBOX", "UNREAD", *(["Urgent"] if urgent else [])],
        }
        if "attached" in text:
            first["attachments"] = [
                {
                    "filename": f"log-{ticket}.txt",
                    "type": "text/plain",
                    "content": f"E{random.randint(100, 599)} at start\n",
                }
            ]
        messages.append(first)
        if number % 3 == 0:
            first["labels"] = ["INBOX", "Answered"]
            reply = {
                "from": team,
                "to": customer,
                "subject": f"Re: {first['subject']}",
                "body": random.choice(_WORDS["answers"]),
            }
            messages.append({**reply, "date": f"-{max(age - 2, 1)}h", "thread": f"ticket-{ticket}", "labels": ["SENT"]})
    return {**read_world(_WORLDS / "support.json"), "messages": messages}


def archive(random: Random) -> dict[str, Any]:
    """Two thousand messages, for paging and load."""
    messages = []
    for number in range(2000):
        topic, text = random.choice(_WORDS["topics"])
        messages.append(
            {
                "from": _person(random),
                "to": _ME,
                "subject": f"{random.choice(_WORDS['projects'])}: {topic} ({number})",
                "body": text,
                "date": f"-{number * 3 + 1}h",
                "labels": ["INBOX", *(["UNREAD"] if number % 5 == 0 else [])],
            }
        )
    return {"messages": messages}


SCENARIOS = scenarios(load, empty, office, support, archive)
