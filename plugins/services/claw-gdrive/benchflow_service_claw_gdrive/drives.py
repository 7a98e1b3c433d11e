"""drives.* (shared drives), and teamdrives.*, their older name."""

from __future__ import annotations

import json
from typing import Any

from benchflow_claw_kit.api import Call
from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.store import Row, Store

from benchflow_service_claw_gdrive import query
from benchflow_service_claw_gdrive.access import ALPHABET, RANK, add_permission, current_user, role_of
from benchflow_service_claw_gdrive.api import api
from benchflow_service_claw_gdrive.query import BadQuery, Condition
from benchflow_service_claw_gdrive.state import remove_tree
from benchflow_service_claw_gdrive.times import narrow, page, parse_time, show_time

__all__ = ["log_drive", "make_drive", "show_drive"]

Answer = dict[str, Any]
BRIEF = ("kind", "id", "name")


def _as_file(drive: str) -> Row:
    return {"id": drive, "parent": None, "drive": drive, "is_root": 0}


def _role(call: Call, drive: str) -> str | None:
    return role_of(call.store, _as_file(drive), current_user(call))


def log_drive(store: Store, drive: str) -> None:
    facts = {"item": drive, "kind": "drive", "seq": store.count("drive:change"), "time": store.now_ms(), "drive": drive}
    store.insert("drive_changes", replace=True, **facts)


def make_drive(store: Store, name: str, organizer: str, id: str | None = None, request: str | None = None) -> str:
    drive = id or "0A" + store.new_id("shared drive", 17, ALPHABET)
    store.insert("drive_drives", id=drive, name=name, created=store.now_ms(), request_id=request)
    add_permission(store, drive, "user", "organizer", organizer)
    log_drive(store, drive)
    return drive


def show_drive(call: Call, row: Row, kind: str = "drive#drive") -> Answer:
    role = _role(call, row["id"]) or "reader"
    rank = RANK[role]
    hidden = call.store.one("SELECT 1 FROM drive_hidden WHERE drive = ? AND user = ?", row["id"], current_user(call))
    organizer, writer = rank >= RANK["organizer"], rank >= RANK["writer"]
    usual = dict.fromkeys(
        ("adminManagedRestrictions", "copyRequiresWriterPermission", "domainUsersOnly", "driveMembersOnly"), False
    )
    usual["sharingFoldersRequiresOrganizerPermission"] = False
    return {
        "kind": kind,
        "id": row["id"],
        "name": row["name"],
        "createdTime": show_time(row["created"]),
        "hidden": hidden is not None,
        "colorRgb": row["color"] or "#0f9d58",
        "restrictions": {**usual, **json.loads(row["restrictions"])},
        "capabilities": {
            "canAddChildren": writer,
            "canComment": rank >= RANK["commenter"],
            "canCopy": True,
            "canDeleteChildren": organizer,
            "canDeleteDrive": organizer,
            "canDownload": True,
            "canEdit": writer,
            "canListChildren": True,
            "canManageMembers": organizer,
            "canReadRevisions": writer,
            "canRename": writer,
            "canRenameDrive": organizer,
            "canShare": writer,
            "canTrashChildren": rank >= RANK["fileOrganizer"],
        },
    } | ({"themeId": row["theme"]} if row["theme"] else {})


def _find(call: Call, role: str = "reader") -> Row:
    wanted = call.path.get("driveId") or call.path["teamDriveId"]
    row = call.store.one("SELECT * FROM drive_drives WHERE id = ?", wanted)
    have = _role(call, wanted) if row else None
    if row is None or have is None:
        raise ApiError(404, f"Shared drive not found: {wanted}", "notFound", location="driveId")
    if RANK[have] < RANK[role]:
        raise ApiError(
            403, "The user does not have sufficient permissions for this shared drive.", "insufficientFilePermissions"
        )
    return row


def _create(call: Call, kind: str) -> Answer:
    name = call.body.get("name")
    if not name:
        raise ApiError(400, "The name of the shared drive is required.", "required", location="name")
    request = call.get("requestId")
    again = call.store.one("SELECT * FROM drive_drives WHERE request_id = ?", request)
    if again:
        raise ApiError(409, "A shared drive with the request ID already exists.", "duplicate")
    drive = make_drive(call.store, name, current_user(call), request=request)
    call.path["driveId"] = drive
    _set(call, drive)
    return narrow(call, show_drive(call, _find(call), kind), BRIEF)


def _set(call: Call, drive: str) -> None:
    columns: Answer = {}
    for field, column in (("name", "name"), ("colorRgb", "color"), ("themeId", "theme")):
        if call.body.get(field):
            columns[column] = call.body[field]
    if call.body.get("restrictions"):
        have = json.loads(call.store.value("SELECT restrictions FROM drive_drives WHERE id = ?", drive))
        columns["restrictions"] = have | {k: v for k, v in call.body["restrictions"].items() if v is not None}
    if columns:
        call.store.update("drive_drives", {"id": drive}, **columns)


def _list(call: Call, kind: str, name: str) -> Answer:
    rows = [row for row in call.store.all("SELECT * FROM drive_drives ORDER BY name, id") if _role(call, row["id"])]
    text = call.get("q") or ""
    if text.strip():
        try:
            tree = query.parse(text, query.DRIVE_TERMS)
        except BadQuery:
            raise ApiError(400, "Invalid Value", "invalid", location="q") from None
        rows = [row for row in rows if query.matches(tree, lambda c, row=row: _holds(call, row, c))]  # type: ignore[misc]
    found, following = page(call, rows, 10, 100, [text, current_user(call)])
    shown = [narrow(call, show_drive(call, row, f"drive#{kind}"), BRIEF) for row in found]
    return {"kind": f"drive#{kind}List", name: shown} | ({"nextPageToken": following} if following else {})


def _holds(call: Call, row: Row, condition: Condition) -> bool:
    term, operator, value = condition.term, condition.operator, condition.value
    if term == "name":
        return (
            query.name_contains(row["name"], value)
            if operator == "contains"
            else query.compare(operator, row["name"], value)
        )
    if term == "hidden":
        return query.compare(operator, show_drive(call, row)["hidden"], value)
    if term == "createdTime":
        return query.compare(operator, row["created"], parse_time(value, "q"))
    wanted = " AND role = 'organizer'" if term == "organizerCount" else ""
    count = call.store.value(
        f"SELECT count(*) FROM drive_permissions WHERE file = ? AND deleted = 0{wanted}", row["id"]
    )
    if not str(value).lstrip("-").isdigit():
        raise ApiError(400, "Invalid Value", "invalid", location="q")
    return query.compare(operator, count, int(value))


def _update(call: Call, kind: str) -> Answer:
    row = _find(call, "organizer")
    if call.body.get("name") == "":
        raise ApiError(400, "The name of the shared drive is required.", "required", location="name")
    _set(call, row["id"])
    log_drive(call.store, row["id"])
    return narrow(call, show_drive(call, _find(call), kind), BRIEF)


def _delete(call: Call) -> None:
    row = _find(call, "organizer")
    inside = call.store.all("SELECT * FROM drive_files WHERE drive = ?", row["id"])
    if [one for one in inside if not one["trashed"]] and not call.get("allowItemDeletion"):
        raise ApiError(
            403,
            "A shared drive cannot be deleted while it contains items that are not trashed.",
            "cannotDeleteResourceWithChildren",
        )
    log_drive(call.store, row["id"])
    for one in inside:
        if call.store.one("SELECT 1 FROM drive_files WHERE id = ?", one["id"]):
            remove_tree(call.store, one)
    call.store.delete("drive_permissions", file=row["id"])
    call.store.delete("drive_hidden", drive=row["id"])
    call.store.delete("drive_drives", id=row["id"])


@api.method("drive.drives.create")
def create(call: Call) -> Answer:
    return _create(call, "drive#drive")


@api.method("drive.drives.get")
def get(call: Call) -> Answer:
    return narrow(call, show_drive(call, _find(call)), BRIEF)


@api.method("drive.drives.list")
def list_drives(call: Call) -> Answer:
    return _list(call, "drive", "drives")


@api.method("drive.drives.update")
def update(call: Call) -> Answer:
    return _update(call, "drive#drive")


@api.method("drive.drives.delete")
def delete(call: Call) -> None:
    _delete(call)


@api.method("drive.drives.hide")
def hide(call: Call) -> Answer:
    row = _find(call)
    call.store.insert("drive_hidden", replace=True, drive=row["id"], user=current_user(call))
    return narrow(call, show_drive(call, row), BRIEF)


@api.method("drive.drives.unhide")
def unhide(call: Call) -> Answer:
    row = _find(call)
    call.store.delete("drive_hidden", drive=row["id"], user=current_user(call))
    return narrow(call, show_drive(call, row), BRIEF)


@api.method("drive.teamdrives.create")
def create_team_drive(call: Call) -> Answer:
    return _create(call, "drive#teamDrive")


@api.method("drive.teamdrives.get")
def get_team_drive(call: Call) -> Answer:
    return narrow(call, show_drive(call, _find(call), "drive#teamDrive"), BRIEF)


@api.method("drive.teamdrives.list")
def list_team_drives(call: Call) -> Answer:
    return _list(call, "teamDrive", "teamDrives")


@api.method("drive.teamdrives.update")
def update_team_drive(call: Call) -> Answer:
    return _update(call, "drive#teamDrive")


@api.method("drive.teamdrives.delete")
def delete_team_drive(call: Call) -> None:
    _delete(call)
