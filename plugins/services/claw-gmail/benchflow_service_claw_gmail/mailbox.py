"""One user's mailbox: messages, labels, threads and the history of every change."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from benchflow_claw_kit import ApiError, Call, Row, Store, bad_request, forbidden, not_found

from benchflow_service_claw_gmail import mime
from benchflow_service_claw_gmail.search import Mailbox as SearchBox
from benchflow_service_claw_gmail.search import label_key

__all__ = ["SYSTEM_LABELS", "Mailbox", "create_user", "invalid_argument", "mailbox_of", "primary_user"]

SYSTEM_LABELS: dict[str, tuple[str | None, str | None]] = {
    "CHAT": ("hide", "labelHide"),
    "SENT": (None, None),
    "INBOX": (None, None),
    "IMPORTANT": ("hide", "labelHide"),
    "TRASH": ("hide", "labelHide"),
    "DRAFT": (None, None),
    "SPAM": ("hide", "labelHide"),
    "CATEGORY_FORUMS": ("hide", "labelHide"),
    "CATEGORY_UPDATES": ("hide", "labelHide"),
    "CATEGORY_PERSONAL": ("hide", "labelHide"),
    "CATEGORY_PROMOTIONS": ("hide", "labelHide"),
    "CATEGORY_SOCIAL": ("hide", "labelHide"),
    "STARRED": (None, None),
    "UNREAD": (None, None),
}
FIXED = frozenset({"SENT", "DRAFT", "CHAT"})
"""Labels that nobody can put on or take off."""
LIGHT = (
    "id, thread_id, history_id, labels, internal_date, sender, recipients, cc, bcc, subject, snippet, body, filenames, "
    "rfc822_id, size"
)
FIRST_HISTORY = 1000


def invalid_argument(message: str) -> ApiError:
    return bad_request(message, "invalidArgument")


def create_user(store: Store, email: str, name: str = "") -> None:
    email = email.lower()
    position = store.count("user")
    store.insert(
        "users", email=email, name=name, history_id=FIRST_HISTORY, history_floor=FIRST_HISTORY, position=position
    )
    for id, (in_messages, in_labels) in SYSTEM_LABELS.items():
        store.insert(
            "labels",
            user=email,
            id=id,
            name=id,
            type="system",
            message_list_visibility=in_messages,
            label_list_visibility=in_labels,
        )
    primary = {"sendAsEmail": email, "displayName": name, "replyToAddress": "", "signature": ""}
    store.insert("send_as", user=email, id=email, data={**primary, "isPrimary": True, "isDefault": True})


def primary_user(store: Store) -> str:
    return str(store.value("SELECT email FROM users ORDER BY position LIMIT 1"))


def mailbox_of(call: Call) -> Mailbox:
    """The mailbox that `userId` means to whoever asks. A token's user that is new here gets an empty one."""
    store, asked = call.store, call["userId"].lower()
    mine = (call.principal.user or "").lower() or primary_user(store)
    if asked == "me":
        asked = mine
    if "@" not in asked:
        raise invalid_argument("Invalid userId")
    known = store.one("SELECT email FROM users WHERE email = ?", asked)
    if asked != mine and not (known and _may_enter(store, call, mine, asked)):
        raise forbidden(f"Delegation denied for {mine}", "forbidden")
    if known is None:
        with store.transaction():
            create_user(store, asked)
    return Mailbox(store, asked)


def _may_enter(store: Store, call: Call, mine: str, asked: str) -> bool:
    if call.principal.anonymous:
        return True
    return store.one("SELECT id FROM delegates WHERE user = ? AND id = ?", asked, mine) is not None


class Mailbox:
    def __init__(self, store: Store, user: str) -> None:
        self.store = store
        self.user = user

    # -- history

    def record(self, kind: str, row: Row, labels: Sequence[str] = ()) -> int:
        """One entry of the history; the message's and the mailbox's history id become its id."""
        self.store.run("UPDATE users SET history_id = history_id + 1 WHERE email = ?", self.user)
        number: int = self.history_id
        self.store.insert(
            "history",
            user=self.user,
            id=number,
            kind=kind,
            message_id=row["id"],
            thread_id=row["thread_id"],
            labels=list(labels),
            message_labels=row["labels"],
        )
        self.store.update("messages", {"user": self.user, "id": row["id"]}, history_id=number)
        return number

    @property
    def history_id(self) -> int:
        value: int = self.store.value("SELECT history_id FROM users WHERE email = ?", self.user)
        return value

    # -- messages

    def message(self, id: str, columns: str = LIGHT) -> Row:
        if not re.fullmatch(r"[0-9a-fA-F]{1,16}", id):
            raise invalid_argument("Invalid id value")
        row = self.store.one(f"SELECT {columns} FROM messages WHERE user = ? AND id = ?", self.user, id.lower())
        if row is None:
            raise not_found()
        return row

    def thread(self, id: str) -> list[Row]:
        if not re.fullmatch(r"[0-9a-fA-F]{1,16}", id):
            raise invalid_argument("Invalid id value")
        rows = self.store.all(
            f"SELECT {LIGHT} FROM messages WHERE user = ? AND thread_id = ? ORDER BY internal_date, id", self.user, id
        )
        if not rows:
            raise not_found()
        return rows

    def add(
        self,
        raw: bytes,
        labels: Iterable[str],
        thread_id: str | None = None,
        date: int | None = None,
        quiet: bool = False,
    ) -> Row:
        """A new message. `quiet` leaves no history: what was there before the world began."""
        root = mime.parse(raw)
        id = "19" + self.store.new_id("message", 14)
        thread = thread_id or self.thread_for(root) or id
        text = mime.search_text(root)
        names = [part.filename for part in root.walk() if part.attached and part.filename]
        row: Row = {
            "id": id,
            "thread_id": thread,
            "history_id": self.history_id,
            "labels": json.dumps(sorted(set(labels))),
            "internal_date": self.store.now_ms() if date is None else date,
            "sender": root.header("from"),
            "recipients": root.header("to"),
            "cc": root.header("cc"),
            "bcc": root.header("bcc"),
            "subject": root.header("subject"),
            "snippet": mime.snippet_of(text),
            "body": text[:200_000],
            "filenames": json.dumps(names, ensure_ascii=False),
            "rfc822_id": root.header("message-id"),
            "size": len(raw),
        }
        self.store.insert("messages", user=self.user, raw=raw, **row)
        if not quiet:
            row["history_id"] = self.record("messageAdded", row)
        return row

    def thread_for(self, root: mime.MimePart) -> str | None:
        """The thread that a message answers to: it names one of its messages and keeps the subject."""
        named = re.findall(r"<[^<>\s]+>", root.header("in-reply-to") + " " + root.header("references"))
        for rfc822_id in reversed(named[-50:]):
            row = self.store.one(
                "SELECT thread_id, subject FROM messages WHERE user = ? AND rfc822_id = ?", self.user, rfc822_id
            )
            if row and base_subject(row["subject"]) == base_subject(root.header("subject")):
                return str(row["thread_id"])
        return None

    def joins(self, thread_id: str, root: mime.MimePart) -> bool:
        """Does a message sent with this threadId belong there? By its subject, or by what it answers."""
        rows = self.thread(thread_id)
        if self.thread_for(root) == thread_id:
            return True
        subject = base_subject(root.header("subject"))
        return any(base_subject(row["subject"]) == subject for row in rows)

    def remove(self, row: Row) -> None:
        self.record("messageDeleted", row)
        self.store.delete("messages", user=self.user, id=row["id"])
        self.store.run("DELETE FROM drafts WHERE user = ? AND message_id = ?", self.user, row["id"])

    # -- labels

    def label_ids(self) -> set[str]:
        return {row["id"] for row in self.store.all("SELECT id FROM labels WHERE user = ?", self.user)}

    def check_labels(self, *groups: Sequence[str], changing: bool = True) -> None:
        known = self.label_ids()
        for label in [label for group in groups for label in group]:
            if label not in known or (changing and label in FIXED):
                raise invalid_argument(f"Invalid label: {label}")

    def relabel(self, row: Row, add: Sequence[str], remove: Sequence[str]) -> Row:
        """The row with its labels changed; history says what really changed."""
        have = set(json.loads(row["labels"]))
        if "TRASH" in add or "SPAM" in add:
            remove = [*remove, "INBOX", *({"TRASH", "SPAM"} - set(add))]
        adding = [label for label in dict.fromkeys(add) if label not in have]
        removing = [label for label in dict.fromkeys(remove) if label in have and label not in add]
        if not adding and not removing:
            return row
        labels = json.dumps(sorted((have | set(adding)) - set(removing)))
        self.store.update("messages", {"user": self.user, "id": row["id"]}, labels=labels)
        row = {**row, "labels": labels}
        if adding:
            row["history_id"] = self.record("labelAdded", row, adding)
        if removing:
            row["history_id"] = self.record("labelRemoved", row, removing)
        return row

    def search_box(self) -> SearchBox:
        rows = self.store.all("SELECT id, name FROM labels WHERE user = ?", self.user)
        return SearchBox(self.user, self.store.now_ms(), {label_key(row["name"]): row["id"] for row in rows})

    def rows(self, labels: Sequence[str] = ()) -> list[Row]:
        """Newest first, those with all of these labels."""
        wanted = "".join(" AND instr(labels, ?)" for _ in labels)
        return self.store.all(
            f"SELECT {LIGHT} FROM messages WHERE user = ?{wanted} ORDER BY internal_date DESC, id DESC",
            self.user,
            *(f'"{label}"' for label in labels),
        )


def base_subject(subject: str) -> str:
    """Without Re:, Fwd: and their like."""
    text = re.sub(r"^(\s*(re|fwd?|aw|sv)\s*(\[\d+\])?\s*:)+", "", subject, flags=re.IGNORECASE)
    return " ".join(text.lower().split())


def listed(rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """An empty list is left out, as the real API does."""
    return {name: rows} if rows else {}
