"""accessproposals.*: people who asked to be let in, as a scenario has them."""

from __future__ import annotations

from typing import Any

from benchflow_claw_kit.api import Call
from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.http import Response, json_response
from benchflow_claw_kit.store import Row

from benchflow_service_claw_gdrive.access import add_permission, current_user, find_file, may, not_found
from benchflow_service_claw_gdrive.api import api
from benchflow_service_claw_gdrive.state import touch
from benchflow_service_claw_gdrive.times import page, show_time

__all__: list[str] = []

Answer = dict[str, Any]
_ROLES = ("reader", "commenter", "writer", "fileOrganizer")


def _file(call: Call) -> Row:
    row = find_file(call)
    if not may(call, row, "writer"):
        raise ApiError(403, "The user is not an approver of this file.", "forbidden")
    return row


def _find(call: Call) -> Row:
    sql = "SELECT * FROM drive_proposals WHERE id = ? AND file = ? AND resolved = ''"
    row = call.store.one(sql, call["proposalId"], _file(call)["id"])
    if row is None:
        raise not_found(call["proposalId"], "Access proposal", "proposalId")
    return row


def _show(row: Row) -> Answer:
    return {
        "fileId": row["file"],
        "proposalId": row["id"],
        "requesterEmailAddress": row["requester"],
        "recipientEmailAddress": row["recipient"],
        "requestMessage": row["message"],
        "createTime": show_time(row["created"]),
        "rolesAndViews": [{"role": row["role"]}],
    }


@api.method("drive.accessproposals.get")
def get(call: Call) -> Answer:
    return _show(_find(call))


@api.method("drive.accessproposals.list")
def list_proposals(call: Call) -> Answer:
    sql = "SELECT * FROM drive_proposals WHERE file = ? AND resolved = '' ORDER BY created, id"
    rows = call.store.all(sql, _file(call)["id"])
    found, following = page(call, rows, 100, 100, call["fileId"])
    answer: Answer = {"accessProposals": [_show(row) for row in found]}
    return answer | ({"nextPageToken": following} if following else {})


@api.method("drive.accessproposals.resolve")
def resolve(call: Call) -> Response:
    """Accepted: the recipient has the role, as if it had been given by hand. Either way the proposal is gone."""
    row, action = _find(call), call.body.get("action")
    if action not in ("ACCEPT", "DENY"):
        raise ApiError(400, "The action must be ACCEPT or DENY.", "required", location="action")
    if action == "ACCEPT":
        roles = call.body.get("role") or []
        if len(roles) != 1 or roles[0] not in _ROLES:
            raise ApiError(400, f"One role is required to accept: {', '.join(_ROLES)}.", "invalid", location="role")
        shared = {"shared": call.store.now_ms(), "shared_by": current_user(call)}
        add_permission(call.store, row["file"], "user", roles[0], row["recipient"], **shared)
        touch(call.store, row["file"], current_user(call), content=False)
    call.store.update("drive_proposals", {"id": row["id"]}, resolved=action)
    return json_response({})
