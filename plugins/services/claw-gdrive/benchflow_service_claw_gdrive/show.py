"""A file as files.get shows it."""

from __future__ import annotations

import json
from typing import Any

from benchflow_claw_kit.api import Call
from benchflow_claw_kit.store import Row

from benchflow_service_claw_gdrive.access import (
    FOLDER,
    RANK,
    current_user,
    permissions_on,
    role_of,
    root_of,
    show_user,
)
from benchflow_service_claw_gdrive.formats import EXPORTS, is_editor
from benchflow_service_claw_gdrive.times import show_time

__all__ = ["BRIEF", "show_file", "show_permission"]

BRIEF = ("kind", "id", "name", "mimeType", "teamDriveId", "driveId", "resourceKey")
"""What is shown without `fields`."""
SHORTCUT = "application/vnd.google-apps.shortcut"
_PLACES = {"document": "document", "spreadsheet": "spreadsheets", "presentation": "presentation", "form": "forms"}


def show_permission(call: Call, one: Row, in_drive: bool = False) -> dict[str, Any]:
    shown: dict[str, Any] = {"kind": "drive#permission", "id": one["id"], "type": one["type"], "role": one["role"]}
    if one["email"]:
        user = show_user(call, one["email"])
        shown |= {"emailAddress": one["email"], "displayName": user["displayName"], "deleted": bool(one["deleted"])}
        shown["pendingOwner"] = bool(one["pending_owner"])
    if one["domain"]:
        shown |= {"domain": one["domain"], "displayName": one["domain"]}
    if one["type"] in ("domain", "anyone"):
        shown["allowFileDiscovery"] = bool(one["discoverable"])
    if one["expires"]:
        shown["expirationTime"] = show_time(one["expires"])
    if one["view"]:
        shown["view"] = one["view"]
    source = one.get("inherited_from")
    if in_drive or source:
        detail = {
            "permissionType": "member" if in_drive and source else "file",
            "role": one["role"],
            "inherited": bool(source),
        }
        shown["permissionDetails"] = [detail | ({"inheritedFrom": source} if source else {})]
    return shown


def _capabilities(row: Row, role: str, target: bool) -> dict[str, bool]:
    rank, folder = RANK[role], row["mime_type"] == FOLDER
    edit, own = rank >= RANK["writer"], rank >= (RANK["fileOrganizer"] if row["drive"] else RANK["owner"])
    settings = json.loads(row["settings"])
    share = own or (edit and settings.get("writersCanShare", True))
    limited = settings.get("copyRequiresWriterPermission", False) and not edit
    locked = any(one.get("readOnly") for one in settings.get("contentRestrictions", []))
    return {
        "canAddChildren": folder and edit,
        "canAddMyDriveParent": False,
        "canChangeCopyRequiresWriterPermission": edit,
        "canChangeViewersCanCopyContent": edit,
        "canComment": rank >= RANK["commenter"],
        "canCopy": not folder and not limited,
        "canDelete": own and not row["is_root"],
        "canDeleteChildren": bool(folder and own and row["drive"]),
        "canDownload": not folder and not limited and not target,
        "canEdit": edit,
        "canListChildren": folder,
        "canModifyContent": edit and not locked,
        "canModifyContentRestriction": edit,
        "canMoveChildrenWithinDrive": folder and edit,
        "canMoveItemOutOfDrive": own and not row["is_root"],
        "canMoveItemWithinDrive": edit and not row["is_root"],
        "canReadRevisions": edit and not folder,
        "canRemoveChildren": folder and edit,
        "canRemoveMyDriveParent": edit,
        "canRename": edit,
        "canShare": share,
        "canTrash": own and not row["is_root"],
        "canUntrash": own and not row["is_root"],
    }


def in_trash(call: Call, row: Row) -> bool:
    """Its own doing, or a folder's above it."""
    at: Row | None = row
    for _ in range(200):
        if at is None:
            return False
        if at["trashed"]:
            return True
        at = call.store.one("SELECT * FROM drive_files WHERE id = ?", at["parent"]) if at["parent"] else None
    return False


def show_file(call: Call, row: Row) -> dict[str, Any]:
    user = current_user(call)
    role = role_of(call.store, row, user) or "reader"
    mine = call.store.one("SELECT * FROM drive_user_files WHERE file = ? AND user = ?", row["id"], user) or {}
    settings = json.loads(row["settings"])
    shown: dict[str, Any] = {
        "kind": "drive#file",
        "id": row["id"],
        "name": row["name"],
        "mimeType": row["mime_type"],
        "starred": bool(mine.get("starred")),
        "trashed": in_trash(call, row),
        "explicitlyTrashed": bool(row["trashed"]),
        "spaces": [row["space"]],
        "version": str(row["version"]),
        "webViewLink": _link(row),
        "iconLink": f"https://drive-thirdparty.googleusercontent.com/16/type/{row['mime_type']}",
        "hasThumbnail": False,
        "thumbnailVersion": "0",
        "viewedByMe": bool(mine.get("viewed")),
        "createdTime": show_time(row["created"]),
        "modifiedTime": show_time(row["modified"]),
        "modifiedByMe": bool(mine.get("modified")),
        "lastModifyingUser": show_user(call, row["modified_by"]),
        "viewersCanCopyContent": not settings.get("copyRequiresWriterPermission", False),
        "copyRequiresWriterPermission": settings.get("copyRequiresWriterPermission", False),
        "writersCanShare": settings.get("writersCanShare", True),
        "capabilities": _capabilities(row, role, bool(row["shortcut_target"])),
        "isAppAuthorized": True,
        "linkShareMetadata": {"securityUpdateEligible": False, "securityUpdateEnabled": True},
        "quotaBytesUsed": str(_quota(call, row)),
    }
    optional = {
        "description": row["description"],
        "viewedByMeTime": show_time(mine.get("viewed")),
        "modifiedByMeTime": show_time(mine.get("modified")),
        "trashedTime": show_time(row["trashed_time"]) if row["drive"] else None,
        "trashingUser": show_user(call, row["trashed_by"]) if row["trashed_by"] and row["drive"] else None,
        "properties": json.loads(row["properties"]) or None,
        "appProperties": json.loads(row["app_properties"]) or None,
        "folderColorRgb": (row["folder_color"] or "#8f8f8f") if row["mime_type"] == FOLDER else None,
        "contentRestrictions": settings.get("contentRestrictions") or None,
        "inheritedPermissionsDisabled": False if row["mime_type"] == FOLDER else None,
    }
    shown |= {name: value for name, value in optional.items() if value is not None}
    return shown | _place(call, row) | _sharing(call, row, user, role) | _content(call, row)


def _quota(call: Call, row: Row) -> int:
    found = call.store.value("SELECT sum(size) FROM drive_revisions WHERE file = ?", row["id"])
    return int(found or 0)


def _link(row: Row) -> str:
    if row["mime_type"] == FOLDER:
        return f"https://drive.google.com/drive/folders/{row['id']}"
    place = _PLACES.get(row["mime_type"].rpartition(".")[2]) if is_editor(row["mime_type"]) else None
    if place:
        return f"https://docs.google.com/{place}/d/{row['id']}/edit?usp=drivesdk"
    return f"https://drive.google.com/file/d/{row['id']}/view?usp=drivesdk"


def _place(call: Call, row: Row) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    parent = row["parent"] or (row["drive"] if row["drive"] and row["id"] != row["drive"] else None)
    if parent:
        above = call.store.one("SELECT * FROM drive_files WHERE id = ?", parent)
        if above is None or role_of(call.store, above, current_user(call)):
            shown["parents"] = [parent]
    if row["drive"]:
        shown |= {"driveId": row["drive"], "teamDriveId": row["drive"]}
    return shown


def _sharing(call: Call, row: Row, user: str, role: str) -> dict[str, Any]:
    listed = permissions_on(call.store, row)
    shown: dict[str, Any] = {"shared": len(listed) > 1}
    if not row["drive"]:
        shown |= {"owners": [show_user(call, row["owner"])], "ownedByMe": row["owner"] == user}
    else:
        shown["hasAugmentedPermissions"] = any(not one["inherited_from"] for one in listed)
    if RANK[role] >= RANK["writer"]:
        shown["permissionIds"] = [one["id"] for one in listed]
        if not row["drive"]:
            shown["permissions"] = [show_permission(call, one) for one in listed]
    given = next((one for one in listed if (one["email"] or "").lower() == user.lower() and one["shared"]), None)
    if given and row["owner"] != user:
        shown["sharedWithMeTime"] = show_time(given["shared"])
        if given["shared_by"]:
            shown["sharingUser"] = show_user(call, given["shared_by"])
    return shown


def _content(call: Call, row: Row) -> dict[str, Any]:
    if row["shortcut_target"]:
        target = call.store.one("SELECT mime_type FROM drive_files WHERE id = ?", row["shortcut_target"])
        details = {"targetId": row["shortcut_target"]}
        return {"shortcutDetails": details | ({"targetMimeType": target["mime_type"]} if target else {})}
    if is_editor(row["mime_type"]):
        links = {
            kind: f"https://www.googleapis.com/drive/v3/files/{row['id']}/export?mimeType={kind}"
            for kind in EXPORTS.get(row["mime_type"], [])
        }
        return {"exportLinks": links} if links else {}
    if row["size"] is None:
        return {}
    name = row["name"]
    ending = name.rpartition(".")[2] if "." in name else ""
    return {
        "size": str(row["size"]),
        "md5Checksum": row["md5"],
        "sha1Checksum": row["sha1"],
        "sha256Checksum": row["sha256"],
        "headRevisionId": row["head_revision"],
        "originalFilename": row["original_name"] or name,
        "fileExtension": ending,
        "fullFileExtension": name.partition(".")[2] if ending else "",
        "webContentLink": f"https://drive.google.com/uc?id={row['id']}&export=download",
    }


def root_alias(call: Call, parent: str) -> str:
    return root_of(call.store, current_user(call)) if parent == "root" else parent
