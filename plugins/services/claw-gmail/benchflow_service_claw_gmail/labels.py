"""users.labels."""

from __future__ import annotations

import json
from typing import Any

from benchflow_claw_kit import ApiError, Call, Row, not_found

from benchflow_service_claw_gmail.contract import api
from benchflow_service_claw_gmail.mailbox import SYSTEM_LABELS, Mailbox, invalid_argument, mailbox_of

_COLORS = (
    "#000000 #434343 #666666 #999999 #cccccc #efefef #f3f3f3 #ffffff #fb4c2f #ffad47 "
    "#fad165 #16a766 #43d692 #4a86e8 #a479e2 #f691b3 #f6c5be #ffe6c7 #fef1d1 #b9e4d0 "
    "#c6f3de #c9daf8 #e4d7f5 #fcdee8 #efa093 #ffd6a2 #fce8b3 #89d3b2 #a0eac9 #a4c2f4 "
    "#d0bcf1 #fbc8d9 #e66550 #ffbc6b #fcda83 #44b984 #68dfa9 #6d9eeb #b694e8 #f7a7c0 "
    "#cc3a21 #eaa041 #f2c960 #149e60 #3dc789 #3c78d8 #8e63ce #e07798 #ac2b16 #cf8933 "
    "#d5ae49 #0b804b #2a9c68 #285bac #653e9b #b65775 #822111 #a46a21 #aa8831 #076239 "
    "#1a764d #1c4587 #41236d #83334c #464646 #e7e7e7 #0d3472 #b6cff5 #0d3b44 #98d7e4 "
    "#3d188e #e3d7ff #711a36 #fbd3e0 #8a1c0a #f2b2a8 #7a2e0b #ffc8af #7a4706 #ffdeb5 "
    "#594c05 #fbe983 #684e07 #fdedc1 #0b4f30 #b3efd3 #04502e #a2dcc1 #c2c2c2 #4986e7 "
    "#2da2bb #b99aff #994a64 #f691b2 #ff7537 #ffad46 #662e37 #ebdbde #cca6ac #094228 "
    "#42d692 #16a765"
)
PALETTE = frozenset(_COLORS.split())
MAX_NAME = 225


def _label(box: Mailbox, id: str) -> Row:
    row = box.store.one("SELECT * FROM labels WHERE user = ? AND id = ?", box.user, id)
    if row is None:
        raise not_found()
    return row


def _json(row: Row) -> dict[str, Any]:
    value: dict[str, Any] = {"id": row["id"], "name": row["name"]}
    if row["message_list_visibility"]:
        value["messageListVisibility"] = row["message_list_visibility"]
    if row["label_list_visibility"]:
        value["labelListVisibility"] = row["label_list_visibility"]
    value["type"] = row["type"]
    if row["background_color"]:
        value["color"] = {"textColor": row["text_color"], "backgroundColor": row["background_color"]}
    return value


@api.method("gmail.users.labels.list")
def list_labels(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    rows = box.store.all("SELECT * FROM labels WHERE user = ? ORDER BY rowid", box.user)
    return {"labels": [_json(row) for row in rows]}


@api.method("gmail.users.labels.get")
def get_label(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    row = _label(box, call["id"])
    messages = box.rows([row["id"]])
    if row["id"] not in ("TRASH", "SPAM"):
        messages = [m for m in messages if '"TRASH"' not in m["labels"] and '"SPAM"' not in m["labels"]]
    unread = [m for m in messages if '"UNREAD"' in m["labels"]]
    return {
        **_json(row),
        "messagesTotal": len(messages),
        "messagesUnread": len(unread),
        "threadsTotal": len({m["thread_id"] for m in messages}),
        "threadsUnread": len({m["thread_id"] for m in unread}),
    }


def _columns(box: Mailbox, body: dict[str, Any], own: str | None = None) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if "name" in body:
        columns["name"] = _checked_name(box, body["name"], own)
    if "messageListVisibility" in body:
        columns["message_list_visibility"] = body["messageListVisibility"]
    if "labelListVisibility" in body:
        columns["label_list_visibility"] = body["labelListVisibility"]
    if "color" in body:
        for field, column in (("textColor", "text_color"), ("backgroundColor", "background_color")):
            color = body["color"].get(field, "")
            if color.lower() not in PALETTE:
                raise invalid_argument(f"Label color {color} is not on the allowed color palette")
            columns[column] = color.lower()
    return columns


def _checked_name(box: Mailbox, name: str, own: str | None) -> str:
    clean = name.strip()
    if not clean or len(clean) > MAX_NAME or clean.upper() in SYSTEM_LABELS or clean.startswith("/"):
        raise invalid_argument("Invalid label name")
    other = box.store.one(
        "SELECT id FROM labels WHERE user = ? AND lower(name) = ? AND id IS NOT ?", box.user, clean.lower(), own
    )
    if other:
        raise ApiError(409, "Label name exists or conflicts", "aborted", canonical="ABORTED")
    return clean


@api.method("gmail.users.labels.create")
def create_label(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    if "name" not in call.body:
        raise invalid_argument("Invalid label name")
    given = {"message_list_visibility": "show", "label_list_visibility": "labelShow", **_columns(box, call.body)}
    id = f"Label_{box.store.count('label:' + box.user)}"
    box.store.insert("labels", user=box.user, id=id, type="user", **given)
    return _json(_label(box, id))


def _update(call: Call, whole: bool) -> dict[str, Any]:
    box = mailbox_of(call)
    row = _label(box, call["id"])
    if call.body.get("id", row["id"]) != row["id"]:
        raise invalid_argument("Invalid label id")
    if row["type"] == "system" and call.body.get("name", row["name"]) != row["name"]:
        raise invalid_argument("Cannot rename a system label")
    if whole and "name" not in call.body:
        raise invalid_argument("Invalid label name")
    body = {name: value for name, value in call.body.items() if name != "name" or row["type"] == "user"}
    columns = _columns(box, body, row["id"])
    if whole and row["type"] == "user":
        fresh = {"message_list_visibility": "show", "label_list_visibility": "labelShow"}
        columns = {**fresh, "background_color": None, "text_color": None, **columns}
    if columns:
        box.store.update("labels", {"user": box.user, "id": row["id"]}, **columns)
    return _json(_label(box, row["id"]))


@api.method("gmail.users.labels.update")
def update_label(call: Call) -> dict[str, Any]:
    return _update(call, whole=True)


@api.method("gmail.users.labels.patch")
def patch_label(call: Call) -> dict[str, Any]:
    return _update(call, whole=False)


@api.method("gmail.users.labels.delete")
def delete_label(call: Call) -> None:
    box = mailbox_of(call)
    row = _label(box, call["id"])
    if row["type"] == "system":
        raise invalid_argument("Invalid delete request: system labels cannot be deleted")
    for message in box.rows([row["id"]]):
        if row["id"] in json.loads(message["labels"]):
            box.relabel(message, [], [row["id"]])
    box.store.delete("labels", user=box.user, id=row["id"])
