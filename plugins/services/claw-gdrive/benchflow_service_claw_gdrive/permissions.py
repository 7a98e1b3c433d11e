"""permissions.*: of a file or of a shared drive."""

from __future__ import annotations

import json
import re
from typing import Any

from benchflow_claw_kit.api import Call
from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.store import Row

from benchflow_service_claw_gdrive.access import (
    RANK,
    add_permission,
    current_user,
    find_file,
    insufficient,
    not_found,
    permissions_on,
    role_of,
    root_of,
)
from benchflow_service_claw_gdrive.api import api
from benchflow_service_claw_gdrive.show import show_permission
from benchflow_service_claw_gdrive.state import log_change, touch
from benchflow_service_claw_gdrive.times import narrow, page, parse_time

__all__: list[str] = []

Answer = dict[str, Any]
BRIEF = ("kind", "id", "type", "role", "allowFileDiscovery", "expirationTime")
_EMAIL = re.compile(r"[^@\s,;]+@[^@\s,;]+\.[^@\s,;]+")


def _target(call: Call) -> Row:
    """A file, or a shared drive dressed as one."""
    drive = call.store.one("SELECT * FROM drive_drives WHERE id = ?", call["fileId"])
    if drive is None:
        return find_file(call)
    row = {"id": drive["id"], "parent": None, "drive": drive["id"], "owner": None, "is_root": 0, "settings": "{}"}
    if role_of(call.store, row, current_user(call)) is None:
        raise not_found(call["fileId"])
    return row


def _may_share(call: Call, row: Row) -> None:
    role = role_of(call.store, row, current_user(call)) or "reader"
    least = "writer" if json.loads(row["settings"]).get("writersCanShare", True) else "owner"
    if row["id"] == row["drive"]:
        least = "organizer"
    if RANK[role] < RANK[least]:
        raise insufficient()


def _find(call: Call, row: Row) -> Row:
    for one in permissions_on(call.store, row):
        if one["id"] == call["permissionId"]:
            return one
    raise not_found(call["permissionId"], "Permission", "permissionId")


def _changed(call: Call, row: Row) -> None:
    if row["id"] != row["drive"]:
        touch(call.store, row["id"], current_user(call), content=False)
    else:
        from benchflow_service_claw_gdrive.drives import log_drive

        log_drive(call.store, row["id"])


def _role(call: Call, row: Row, kind: str) -> str:
    role = call.body.get("role")
    if role is None:
        raise ApiError(
            400, "The permission role field is required.", "required", location="permission.role", location_type="other"
        )
    if role not in RANK:
        raise ApiError(
            400,
            f"The specified role '{role}' is not valid.",
            "invalid",
            location="permission.role",
            location_type="other",
        )
    if role in ("organizer", "fileOrganizer") and not row["drive"]:
        raise ApiError(403, "The role is only valid for items in shared drives.", "invalidSharingRequest")
    if role == "owner" and row["drive"]:
        raise ApiError(403, "Files within shared drives must not have owners.", "ownerOnTeamDriveItemNotSupported")
    if role == "owner" and kind not in ("user", "group"):
        raise ApiError(400, "Only a user can own a file.", "invalid")
    if kind == "anyone" and RANK[role] > RANK["writer"]:
        raise ApiError(400, "The role is not valid for permissions of type anyone.", "invalid")
    return str(role)


def _expires(call: Call, kind: str) -> int | None:
    text = call.body.get("expirationTime")
    if not text:
        return None
    if kind not in ("user", "group"):
        raise ApiError(403, "Expiration dates can only be set on user and group permissions.", "cannotSetExpiration")
    at = parse_time(text, "expirationTime")
    if not call.store.now_ms() < at < call.store.now_ms() + 366 * 86_400_000:
        raise ApiError(
            403, "The expiration time must be in the future and at most one year away.", "expirationDateInvalid"
        )
    return at


@api.method("drive.permissions.create")
def create(call: Call) -> Answer:
    row = _target(call)
    _may_share(call, row)
    kind = call.body.get("type")
    if kind is None:
        raise ApiError(
            400, "The permission type field is required.", "required", location="permission.type", location_type="other"
        )
    if kind not in ("user", "group", "domain", "anyone"):
        raise ApiError(
            400,
            f"The specified permission type '{kind}' is not valid.",
            "invalid",
            location="permission.type",
            location_type="other",
        )
    role = _role(call, row, kind)
    email, domain = call.body.get("emailAddress"), call.body.get("domain")
    if kind in ("user", "group"):
        if not email:
            text = "The specified emailAddress is invalid or not applicable for the given permission type."
            raise ApiError(400, text, "invalid", location="permission.emailAddress", location_type="other")
        if not _EMAIL.fullmatch(email):
            raise ApiError(
                400,
                "The specified emailAddress is invalid or not applicable for the given permission type.",
                "invalidSharingRequest",
            )
    elif email:
        text = "The specified emailAddress is invalid or not applicable for the given permission type."
        raise ApiError(400, text, "invalid", location="permission.emailAddress", location_type="other")
    if kind == "domain" and not domain:
        raise ApiError(
            400,
            "The specified domain is invalid or not applicable for the given permission type.",
            "invalid",
            location="permission.domain",
            location_type="other",
        )
    if row["is_root"]:
        raise insufficient()
    if role == "owner":
        return _transfer(call, row, str(email))
    identity = add_permission(
        call.store,
        row["id"],
        kind,
        role,
        email,
        domain=domain if kind == "domain" else None,
        discoverable=int(bool(call.body.get("allowFileDiscovery"))),
        expires=_expires(call, kind),
        view=call.body.get("view"),
        shared=call.store.now_ms(),
        shared_by=current_user(call),
    )
    _changed(call, row)
    return _answer(call, row, identity)


def _answer(call: Call, row: Row, identity: str) -> Answer:
    one = next(p for p in permissions_on(call.store, row) if p["id"] == identity)
    return narrow(call, show_permission(call, one, bool(row["drive"])), BRIEF)


def _transfer(call: Call, row: Row, email: str) -> Answer:
    """The old owner keeps writing."""
    if not call.get("transferOwnership"):
        text = "The transferOwnership parameter must be enabled when the permission role is 'owner'."
        raise ApiError(403, text, "forbidden", location="transferOwnership")
    user = current_user(call)
    if row["owner"] != user:
        raise insufficient()
    if not call.store.one("SELECT 1 FROM drive_users WHERE lower(email) = lower(?)", email):
        raise ApiError(
            403, "Ownership can only be transferred to another user of the organization.", "invalidSharingRequest"
        )
    email = str(call.store.value("SELECT email FROM drive_users WHERE lower(email) = lower(?)", email))
    call.store.run("UPDATE drive_permissions SET role = 'writer' WHERE file = ? AND role = 'owner'", row["id"])
    identity = add_permission(call.store, row["id"], "user", "owner", email, shared=call.store.now_ms(), shared_by=user)
    columns = {"owner": email}
    if call.get("moveToNewOwnersRoot"):
        columns["parent"] = root_of(call.store, email)
    call.store.update("drive_files", {"id": row["id"]}, **columns)
    _changed(call, row)
    return _answer(call, {**row, **columns}, identity)


@api.method("drive.permissions.list")
def list_permissions(call: Call) -> Answer:
    row = _target(call)
    if RANK[role_of(call.store, row, current_user(call)) or "reader"] < RANK["writer"] and not row["drive"]:
        text = "The user does not have sufficient permissions to view the permissions of this file."
        raise ApiError(403, text, "insufficientFilePermissions")
    shown = [
        narrow(call, show_permission(call, one, bool(row["drive"])), BRIEF) for one in permissions_on(call.store, row)
    ]
    found, following = page(call, shown, 100, 100, row["id"])
    answer: Answer = {"kind": "drive#permissionList", "permissions": found}
    return answer | ({"nextPageToken": following} if following else {})


@api.method("drive.permissions.get")
def get(call: Call) -> Answer:
    row = _target(call)
    return narrow(call, show_permission(call, _find(call, row), bool(row["drive"])), BRIEF)


@api.method("drive.permissions.update")
def update(call: Call) -> Answer:
    row = _target(call)
    _may_share(call, row)
    one = _find(call, row)
    wrong = set(call.body) - {"role", "expirationTime", "kind", "view", "pendingOwner", "id", "type"}
    if wrong:
        raise ApiError(403, "The resource body includes fields which are not directly writable.", "fieldNotWritable")
    role = _role(call, row, one["type"]) if "role" in call.body else one["role"]
    if role == "owner" and one["role"] != "owner":
        return _transfer(call, row, one["email"])
    if one["role"] == "owner" and role != "owner":
        raise ApiError(403, "The owner's role cannot be changed.", "insufficientFilePermissions")
    if one["inherited_from"]:
        if RANK[role] < RANK[one["role"]]:
            raise ApiError(403, "Cannot downgrade an inherited permission.", "cannotModifyInheritedPermission")
        add_permission(call.store, row["id"], one["type"], role, one["email"], domain=one["domain"])
    expires = None if call.get("removeExpiration") else _expires(call, one["type"]) or one["expires"]
    call.store.update("drive_permissions", {"file": row["id"], "id": one["id"]}, role=role, expires=expires)
    _changed(call, row)
    return _answer(call, row, one["id"])


@api.method("drive.permissions.delete")
def delete(call: Call) -> None:
    """A person may always leave; others need to be able to share."""
    row = _target(call)
    one = _find(call, row)
    if (one["email"] or "").lower() != current_user(call).lower() or one["role"] == "owner":
        _may_share(call, row)
    if one["role"] == "owner":
        raise insufficient()
    if one["inherited_from"]:
        raise ApiError(403, "Cannot delete an inherited permission.", "cannotDeletePermission")
    if row["id"] != row["drive"]:
        log_change(call.store, row)
    call.store.delete("drive_permissions", file=row["id"], id=one["id"])
    if row["id"] != row["drive"]:
        call.store.run("UPDATE drive_files SET version = version + 1 WHERE id = ?", row["id"])
