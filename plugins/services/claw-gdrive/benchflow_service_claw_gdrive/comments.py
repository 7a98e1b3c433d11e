"""comments.* and replies.*"""

from __future__ import annotations

import html
import json
import re
from typing import Any

from benchflow_claw_kit.api import Call
from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.store import Row

from benchflow_service_claw_gdrive.access import ALPHABET, current_user, find_file, insufficient, not_found, show_user
from benchflow_service_claw_gdrive.api import api
from benchflow_service_claw_gdrive.state import touch
from benchflow_service_claw_gdrive.times import page, parse_time, require_fields, show_time

__all__: list[str] = []

Answer = dict[str, Any]


def _comment(call: Call, deleted: bool = False) -> Row:
    sql = "SELECT * FROM drive_comments WHERE id = ? AND file = ?"
    row = call.store.one(sql, call["commentId"], call["fileId"])
    if row is None or (row["deleted"] and not deleted):
        raise not_found(call["commentId"], "Comment", "commentId")
    return row


def _text(call: Call) -> str:
    content = call.body.get("content")
    if not content or not str(content).strip():
        raise ApiError(400, "The comment content is required.", "required", location="content")
    if len(content) > 4096:
        raise ApiError(400, "The comment content is too long.", "invalid", location="content")
    return str(content)


def _post(call: Call, row: Row, kind: str) -> Answer:
    """What comments and replies have in common."""
    shown: Answer = {
        "kind": f"drive#{kind}",
        "id": row["id"],
        "createdTime": show_time(row["created"]),
        "modifiedTime": show_time(row["modified"]),
        "author": {
            k: v for k, v in show_user(call, row["author"]).items() if k not in ("emailAddress", "permissionId")
        },
        "deleted": bool(row["deleted"]),
    }
    if not row["deleted"]:
        shown |= {"content": row["content"], "htmlContent": html.escape(row["content"]).replace("\n", "<br>")}
        mentioned = re.findall(r"[+@]([^\s@,;]+@[^\s@,;]+\.\w+)", row["content"])
        if mentioned:
            shown["mentionedEmailAddresses"] = mentioned
    return shown


def _show_reply(call: Call, row: Row) -> Answer:
    return _post(call, row, "reply") | ({"action": row["action"]} if row["action"] else {})


def _replies(call: Call, comment: str, deleted: bool) -> list[Row]:
    rows = call.store.all("SELECT * FROM drive_replies WHERE comment = ? ORDER BY created, id", comment)
    return [row for row in rows if deleted or not row["deleted"]]


def _show(call: Call, row: Row, deleted: bool = False) -> Answer:
    shown = _post(call, row, "comment")
    shown |= {
        "resolved": bool(row["resolved"]),
        "replies": [_show_reply(call, r) for r in _replies(call, row["id"], deleted)],
    }
    if row["quoted"] and not row["deleted"]:
        shown["quotedFileContent"] = json.loads(row["quoted"])
    return shown | ({"anchor": row["anchor"]} if row["anchor"] else {})


@api.method("drive.comments.create")
def create(call: Call) -> Answer:
    require_fields(call)
    find_file(call, role="commenter")
    now = call.store.now_ms()
    comment = "AAAA" + call.store.new_id("comment", 7, ALPHABET)
    call.store.insert(
        "drive_comments",
        id=comment,
        file=call["fileId"],
        author=current_user(call),
        content=_text(call),
        quoted=call.body.get("quotedFileContent"),
        anchor=call.body.get("anchor"),
        created=now,
        modified=now,
    )
    touch(call.store, call["fileId"], current_user(call), content=False)
    call.path["commentId"] = comment
    return _show(call, _comment(call))


@api.method("drive.comments.list")
def list_comments(call: Call) -> Answer:
    require_fields(call)
    find_file(call)
    deleted = bool(call.get("includeDeleted"))
    rows = call.store.all("SELECT * FROM drive_comments WHERE file = ? ORDER BY modified DESC, id", call["fileId"])
    rows = [row for row in rows if deleted or not row["deleted"]]
    if call.get("startModifiedTime"):
        since = parse_time(call.get("startModifiedTime"), "startModifiedTime")
        rows = [row for row in rows if row["modified"] >= since]
    found, following = page(call, rows, 20, 100, [call["fileId"], deleted, call.get("startModifiedTime")])
    answer: Answer = {"kind": "drive#commentList", "comments": [_show(call, row, deleted) for row in found]}
    return answer | ({"nextPageToken": following} if following else {})


@api.method("drive.comments.get")
def get(call: Call) -> Answer:
    require_fields(call)
    find_file(call)
    deleted = bool(call.get("includeDeleted"))
    return _show(call, _comment(call, deleted), deleted)


def _own(call: Call, row: Row) -> None:
    if row["author"] != current_user(call):
        raise insufficient()


@api.method("drive.comments.update")
def update(call: Call) -> Answer:
    require_fields(call)
    find_file(call, role="commenter")
    row = _comment(call)
    _own(call, row)
    call.store.update("drive_comments", {"id": row["id"]}, content=_text(call), modified=call.store.now_ms())
    return _show(call, _comment(call))


@api.method("drive.comments.delete")
def delete(call: Call) -> None:
    file = find_file(call, role="commenter")
    row = _comment(call)
    if file["owner"] != current_user(call):
        _own(call, row)
    call.store.update("drive_comments", {"id": row["id"]}, deleted=1, modified=call.store.now_ms())


# -- replies


def _reply(call: Call, deleted: bool = False) -> Row:
    row = call.store.one(
        "SELECT * FROM drive_replies WHERE id = ? AND comment = ?", call["replyId"], _comment(call)["id"]
    )
    if row is None or (row["deleted"] and not deleted):
        raise not_found(call["replyId"], "Reply", "replyId")
    return row


@api.method("drive.replies.create")
def create_reply(call: Call) -> Answer:
    """`action` resolves or reopens the comment; then the text may be missing."""
    require_fields(call)
    find_file(call, role="commenter")
    comment, action = _comment(call), call.body.get("action")
    if action not in (None, "resolve", "reopen"):
        raise ApiError(400, "Invalid Value", "invalid", location="action")
    content = call.body.get("content") or ""
    if not action or content:
        content = _text(call)
    now = call.store.now_ms()
    reply = "AAAA" + call.store.new_id("reply", 7, ALPHABET)
    facts = {"id": reply, "comment": comment["id"], "author": current_user(call), "content": content, "action": action}
    call.store.insert("drive_replies", created=now, modified=now, **facts)
    resolved = {"resolve": 1, "reopen": 0}.get(action or "", comment["resolved"])
    call.store.update("drive_comments", {"id": comment["id"]}, resolved=resolved, modified=now)
    call.path["replyId"] = reply
    return _show_reply(call, _reply(call))


@api.method("drive.replies.list")
def list_replies(call: Call) -> Answer:
    require_fields(call)
    find_file(call)
    rows = _replies(call, _comment(call)["id"], bool(call.get("includeDeleted")))
    found, following = page(call, rows, 20, 100, [call["commentId"], bool(call.get("includeDeleted"))])
    answer: Answer = {"kind": "drive#replyList", "replies": [_show_reply(call, row) for row in found]}
    return answer | ({"nextPageToken": following} if following else {})


@api.method("drive.replies.get")
def get_reply(call: Call) -> Answer:
    require_fields(call)
    find_file(call)
    return _show_reply(call, _reply(call, bool(call.get("includeDeleted"))))


@api.method("drive.replies.update")
def update_reply(call: Call) -> Answer:
    require_fields(call)
    find_file(call, role="commenter")
    row = _reply(call)
    _own(call, row)
    call.store.update("drive_replies", {"id": row["id"]}, content=_text(call), modified=call.store.now_ms())
    return _show_reply(call, _reply(call))


@api.method("drive.replies.delete")
def delete_reply(call: Call) -> None:
    find_file(call, role="commenter")
    row = _reply(call)
    _own(call, row)
    call.store.update("drive_replies", {"id": row["id"]}, deleted=1, modified=call.store.now_ms())
