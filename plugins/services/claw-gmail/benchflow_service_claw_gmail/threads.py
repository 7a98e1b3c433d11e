"""users.threads and users.history, users.watch, users.stop."""

from __future__ import annotations

import json
import re
from typing import Any

from benchflow_claw_kit import BadToken, Call, Row, not_found, read_token, write_token

from benchflow_service_claw_gmail.contract import api
from benchflow_service_claw_gmail.mailbox import Mailbox, invalid_argument, listed, mailbox_of
from benchflow_service_claw_gmail.messages import (
    brief,
    label_changes,
    matching,
    page_of,
    page_size,
    place,
    short,
    wanted_format,
    whole,
)

WEEK_MS = 7 * 24 * 3600 * 1000


@api.method("gmail.users.threads.list")
def list_threads(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    newest: dict[str, Row] = {}
    for row in matching(call, box):
        newest.setdefault(row["thread_id"], row)
    rows, beside = page_of(call, box, list(newest.values()), place)
    return {**listed([_summary(box, row) for row in rows], "threads"), **beside}


def _summary(box: Mailbox, row: Row) -> dict[str, Any]:
    last = box.thread(row["thread_id"])
    return {
        "id": row["thread_id"],
        "snippet": last[-1]["snippet"],
        "historyId": str(max(one["history_id"] for one in last)),
    }


@api.method("gmail.users.threads.get")
def get_thread(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    rows = box.thread(call["id"])
    form, names = wanted_format(call), call.get("metadataHeaders")
    return {
        "id": call["id"],
        "historyId": str(max(row["history_id"] for row in rows)),
        "messages": [whole(box, row, form, names) for row in rows],
    }


def _changed(call: Call, add: list[str], remove: list[str], box: Mailbox) -> dict[str, Any]:
    rows = [box.relabel(row, add, remove) for row in box.thread(call["id"])]
    return {"id": call["id"], "messages": [short(row) for row in rows]}


@api.method("gmail.users.threads.modify")
def modify_thread(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    box.thread(call["id"])
    add, remove = label_changes(call, box)
    return _changed(call, add, remove, box)


@api.method("gmail.users.threads.trash")
def trash_thread(call: Call) -> dict[str, Any]:
    return _changed(call, ["TRASH"], [], mailbox_of(call))


@api.method("gmail.users.threads.untrash")
def untrash_thread(call: Call) -> dict[str, Any]:
    return _changed(call, [], ["TRASH"], mailbox_of(call))


@api.method("gmail.users.threads.delete")
def delete_thread(call: Call) -> None:
    box = mailbox_of(call)
    for row in box.thread(call["id"]):
        box.remove(row)


# -- history

_LISTS = {
    "messageAdded": "messagesAdded",
    "messageDeleted": "messagesDeleted",
    "labelAdded": "labelsAdded",
    "labelRemoved": "labelsRemoved",
}


@api.method("gmail.users.history.list")
def list_history(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    start = call.get("startHistoryId")
    if start is None:
        raise invalid_argument("Missing required parameter: startHistoryId")
    user = box.store.one("SELECT history_id, history_floor FROM users WHERE email = ?", box.user)
    assert user is not None
    if not user["history_floor"] <= start <= user["history_id"]:
        raise not_found()
    question = [box.user, start, call.get("historyTypes", []), call.get("labelId")]
    after = start
    if call.get("pageToken"):
        try:
            after = int(read_token(box.store.secret, call.get("pageToken"), question)["after"])
        except (BadToken, KeyError):
            raise invalid_argument("Invalid pageToken") from None
    rows = box.store.all("SELECT * FROM history WHERE user = ? AND id > ? ORDER BY id", box.user, after)
    rows = [row for row in rows if _wanted(row, call.get("historyTypes"), call.get("labelId"))]
    size = page_size(call)
    answer = {**listed([_entry(row) for row in rows[:size]], "history"), "historyId": str(user["history_id"])}
    if len(rows) > size:
        answer["nextPageToken"] = write_token(box.store.secret, {"after": rows[size - 1]["id"]}, question)
    return answer


def _wanted(row: Row, kinds: list[str] | None, label: str | None) -> bool:
    if kinds and row["kind"] not in kinds:
        return False
    return label is None or label in json.loads(row["message_labels"]) or label in json.loads(row["labels"])


def _entry(row: Row) -> dict[str, Any]:
    message = {"id": row["message_id"], "threadId": row["thread_id"]}
    change: dict[str, Any] = {"message": {**message, "labelIds": json.loads(row["message_labels"])}}
    if row["kind"].startswith("label"):
        change["labelIds"] = json.loads(row["labels"])
    return {
        "id": str(row["id"]),
        "messages": [brief({"id": row["message_id"], "thread_id": row["thread_id"]})],
        _LISTS[row["kind"]]: [change],
    }


@api.method("gmail.users.watch")
def watch(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    topic = call.body.get("topicName", "")
    if not re.fullmatch(r"projects/[^/\s]+/topics/[^/\s]+", topic):
        raise invalid_argument(f"Invalid topicName does not match projects/*/topics/*: {topic}")
    box.check_labels(call.body.get("labelIds", []), changing=False)
    expiration = box.store.now_ms() + WEEK_MS
    data = {**call.body, "expiration": str(expiration), "historyId": str(box.history_id)}
    box.store.insert("settings", replace=True, user=box.user, name="watch", data=data)
    return {"historyId": str(box.history_id), "expiration": str(expiration)}


@api.method("gmail.users.stop")
def stop(call: Call) -> None:
    box = mailbox_of(call)
    box.store.delete("settings", user=box.user, name="watch")
