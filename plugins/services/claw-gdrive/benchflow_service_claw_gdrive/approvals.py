"""approvals.*: somebody asks others to approve a file, and they answer."""

from __future__ import annotations

import json
from typing import Any

from benchflow_claw_kit.api import Call
from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.store import Row, Store

from benchflow_service_claw_gdrive.access import (
    ALPHABET,
    current_user,
    find_file,
    insufficient,
    may,
    not_found,
    role_of,
    show_user,
)
from benchflow_service_claw_gdrive.api import api
from benchflow_service_claw_gdrive.state import touch
from benchflow_service_claw_gdrive.times import page, parse_time, show_time

__all__ = ["content_changed"]

Answer = dict[str, Any]
_OPEN = "IN_PROGRESS"


def _find(call: Call) -> Row:
    sql = "SELECT * FROM drive_approvals WHERE id = ? AND file = ?"
    row = call.store.one(sql, call["approvalId"], find_file(call)["id"])
    if row is None:
        raise not_found(call["approvalId"], "Approval", "approvalId")
    return row


def _open(call: Call) -> Row:
    row = _find(call)
    if row["status"] != _OPEN:
        raise ApiError(400, f"The approval is not in progress: it is {row['status']}.", "failedPrecondition")
    return row


def _show(call: Call, row: Row) -> Answer:
    shown = {
        "kind": "drive#approval",
        "approvalId": row["id"],
        "targetFileId": row["file"],
        "status": row["status"],
        "initiator": show_user(call, row["initiator"]),
        "createTime": show_time(row["created"]),
        "modifyTime": show_time(row["modified"]),
        "completeTime": show_time(row["completed"]),
        "dueTime": show_time(row["due"]),
        "fileContentChangeBehavior": row["on_change"],
        "approvedRevisionId": row["revision"],
        "reviewerResponses": [
            {"kind": "drive#reviewerResponse", "reviewer": show_user(call, email), "response": response}
            for email, response in json.loads(row["responses"]).items()
        ],
    }
    return {name: value for name, value in shown.items() if value is not None}


def _changed(call: Call, row: Row, said: str, **columns: Any) -> Answer:
    """What was said goes to the log of the approval, which the API has no method to read."""
    log = json.loads(row["log"])
    log.append({"user": current_user(call), "action": said, "message": call.body.get("message", "")})
    call.store.update("drive_approvals", {"id": row["id"]}, modified=call.store.now_ms(), log=log, **columns)
    return _show(call, _find(call))


def _reviewer(call: Call, file: Row, email: str, responses: Answer) -> str:
    if "@" not in email:
        raise ApiError(400, f"Invalid reviewer email: {email[:100]!r}", "invalid", location="reviewerEmails")
    if email in responses:
        raise ApiError(400, f"{email} is a reviewer already.", "invalid", location="reviewerEmails")
    if role_of(call.store, file, email) is None:
        raise ApiError(403, f"The reviewer {email} cannot open the file.", "insufficientFilePermissions")
    return email


@api.method("drive.approvals.start")
def start(call: Call) -> Answer:
    file = find_file(call, role="writer")
    emails = call.body.get("reviewerEmails") or []
    if not emails:
        raise ApiError(400, "At least one reviewer is required.", "required", location="reviewerEmails")
    if call.store.one("SELECT 1 FROM drive_approvals WHERE file = ? AND status = ?", file["id"], _OPEN):
        raise ApiError(400, "The file has an approval in progress.", "failedPrecondition")
    responses: Answer = {}
    for email in emails:
        responses[_reviewer(call, file, email, responses)] = "NO_RESPONSE"
    now, behavior = call.store.now_ms(), call.body.get("fileContentChangeBehavior")
    call.path["approvalId"] = call.store.new_id("approval", 20, ALPHABET)
    call.store.insert(
        "drive_approvals",
        id=call["approvalId"],
        file=file["id"],
        initiator=current_user(call),
        status=_OPEN,
        created=now,
        modified=now,
        due=parse_time(call.body["dueTime"], "dueTime") if call.body.get("dueTime") else None,
        on_change="RESET_APPROVAL" if behavior in (None, "FILE_CONTENT_CHANGE_BEHAVIOR_UNSPECIFIED") else behavior,
        responses=responses,
        log=[{"user": current_user(call), "action": "start", "message": call.body.get("message", "")}],
    )
    if call.body.get("lockFile"):
        restriction = {"readOnly": True, "systemRestricted": True, "type": "globalContentRestriction"}
        settings = json.loads(file["settings"]) | {"contentRestrictions": [restriction]}
        call.store.update("drive_files", {"id": file["id"]}, settings=settings)
        touch(call.store, file["id"], current_user(call), content=False)
    return _show(call, _find(call))


@api.method("drive.approvals.get")
def get(call: Call) -> Answer:
    return _show(call, _find(call))


@api.method("drive.approvals.list")
def list_approvals(call: Call) -> Answer:
    file = find_file(call)
    rows = call.store.all("SELECT * FROM drive_approvals WHERE file = ? ORDER BY created DESC, id", file["id"])
    found, following = page(call, rows, 100, 100, file["id"])
    answer: Answer = {"kind": "drive#approvalList", "items": [_show(call, row) for row in found]}
    return answer | ({"nextPageToken": following} if following else {})


def _respond(call: Call, response: str) -> Answer:
    row, user = _open(call), current_user(call)
    responses = json.loads(row["responses"])
    if user not in responses:
        raise ApiError(403, "The user is not a reviewer of this approval.", "forbidden")
    if responses[user] == response:
        raise ApiError(400, f"The reviewer has answered already: {response}.", "failedPrecondition")
    responses[user] = response
    columns: Answer = {"responses": responses}
    if response == "DECLINED" or all(one == "APPROVED" for one in responses.values()):
        columns |= {"status": response, "completed": call.store.now_ms()}
    if columns.get("status") == "APPROVED":
        columns["revision"] = find_file(call)["head_revision"]
    return _changed(call, row, response.lower(), **columns)


@api.method("drive.approvals.approve")
def approve(call: Call) -> Answer:
    return _respond(call, "APPROVED")


@api.method("drive.approvals.decline")
def decline(call: Call) -> Answer:
    return _respond(call, "DECLINED")


@api.method("drive.approvals.cancel")
def cancel(call: Call) -> Answer:
    row = _open(call)
    find_file(call, role="writer")
    return _changed(call, row, "cancel", status="CANCELLED", completed=call.store.now_ms())


@api.method("drive.approvals.comment")
def comment(call: Call) -> Answer:
    row = _find(call)
    if not (call.body.get("message") or "").strip():
        raise ApiError(400, "The message is required.", "required", location="message")
    return _changed(call, row, "comment")


@api.method("drive.approvals.reassign")
def reassign(call: Call) -> Answer:
    """A writer may add and replace those who did not answer yet; anybody else only hand on their own part."""
    row, file = _open(call), find_file(call)
    responses = json.loads(row["responses"])
    added = [one.get("addedReviewerEmail", "") for one in call.body.get("addReviewers") or []]
    replaced = [
        (one.get("removedReviewerEmail", ""), one.get("addedReviewerEmail", ""))
        for one in call.body.get("replaceReviewers") or []
    ]
    if not added and not replaced:
        raise ApiError(400, "Name reviewers to add or to replace.", "required", location="addReviewers")
    if not may(call, file, "writer") and (added or any(old != current_user(call) for old, _ in replaced)):
        raise insufficient()
    for old, new in replaced:
        if responses.get(old) != "NO_RESPONSE":
            raise ApiError(400, f"{old} is no reviewer who can be replaced.", "failedPrecondition")
        _reviewer(call, file, new, responses)
        responses = {new if email == old else email: response for email, response in responses.items()}
    for new in added:
        responses[_reviewer(call, file, new, responses)] = "NO_RESPONSE"
    return _changed(call, row, "reassign", responses=responses)


def content_changed(store: Store, file: str) -> None:
    """New content: answers to an approval in progress no longer count, unless it was started to keep them."""
    sql = "SELECT * FROM drive_approvals WHERE file = ? AND status = ? AND on_change = 'RESET_APPROVAL'"
    for row in store.all(sql, file, _OPEN):
        responses = dict.fromkeys(json.loads(row["responses"]), "NO_RESPONSE")
        store.update("drive_approvals", {"id": row["id"]}, responses=responses, modified=store.now_ms())
