"""files.*: metadata."""

from __future__ import annotations

import re
from typing import Any

from benchflow_claw_kit.api import Call
from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.store import Row

from benchflow_service_claw_gdrive.access import (
    ALPHABET,
    FOLDER,
    RANK,
    current_user,
    find_file,
    insufficient,
    may,
    must,
    not_found,
    role_of,
    root_of,
)
from benchflow_service_claw_gdrive.api import api
from benchflow_service_claw_gdrive.approvals import content_changed
from benchflow_service_claw_gdrive.fields import columns_of, refuse_unwritable
from benchflow_service_claw_gdrive.formats import IMPORTS, is_editor
from benchflow_service_claw_gdrive.show import BRIEF, SHORTCUT, show_file
from benchflow_service_claw_gdrive.state import (
    below,
    file_content,
    file_text,
    get_row,
    guess_type,
    insert_file,
    log_change,
    put_content,
    remove_tree,
    touch,
)
from benchflow_service_claw_gdrive.times import narrow

__all__ = ["answer", "parent_of"]

Answer = dict[str, Any]


def answer(call: Call, row: Row) -> Answer:
    return narrow(call, show_file(call, row), BRIEF)


def parent_of(call: Call, given: list[str]) -> tuple[Row | None, str | None]:
    """The folder for a new file, or the shared drive it lies in loosely."""
    if len(given) > 1:
        raise ApiError(
            403,
            "A file cannot be created in multiple folders. Only one parent is allowed.",
            "multipleParentsNotSupported",
        )
    user = current_user(call)
    wanted = given[0] if given else "root"
    if wanted in ("root", "appDataFolder"):
        wanted = root_of(call.store, user)
    drive = call.store.one("SELECT * FROM drive_drives WHERE id = ?", wanted)
    if drive is not None:
        loose = {"id": wanted, "parent": None, "drive": wanted, "is_root": 0}
        if RANK.get(role_of(call.store, loose, user) or "", 0) < RANK["writer"]:
            raise insufficient("the specified parent")
        return None, wanted
    row = call.store.one("SELECT * FROM drive_files WHERE id = ?", wanted)
    if row is None or role_of(call.store, row, user) is None:
        raise not_found(wanted)
    if row["mime_type"] != FOLDER:
        raise ApiError(403, "The specified parent is not a folder.", "parentNotAFolder")
    if not may(call, row, "writer"):
        raise ApiError(403, "Insufficient permissions for the specified parent.", "insufficientParentPermissions")
    return row, None


def _new_id(call: Call) -> str | None:
    given = call.body.get("id")
    if given is None:
        return None
    if not re.fullmatch(r"[A-Za-z0-9_-]{10,100}", given):
        raise ApiError(400, "The provided file ID is not usable.", "invalid", location="id")
    if call.store.one("SELECT 1 FROM drive_files WHERE id = ?", given):
        raise ApiError(409, "A file already exists with the provided ID.", "fileIdInUse")
    return str(given)


def _shortcut_target(call: Call, mime_type: str) -> str | None:
    target = (call.body.get("shortcutDetails") or {}).get("targetId")
    if mime_type != SHORTCUT:
        return None
    if not target:
        raise ApiError(400, "The shortcutDetails.targetId field is required for shortcuts.", "shortcutTargetInvalid")
    row = find_file(call, target)
    if row["mime_type"] == SHORTCUT:
        raise ApiError(403, "Shortcuts cannot point to shortcuts.", "shortcutTargetInvalid")
    return str(row["id"])


@api.method("drive.files.create")
def create(call: Call) -> Answer:
    refuse_unwritable(call, ("parents", "id", "shortcutDetails", "createdTime"))
    user = current_user(call)
    parent, drive = parent_of(call, call.body.get("parents") or [])
    name = call.body.get("name") or "Untitled"
    wanted = call.body.get("mimeType")
    media_type = guess_type(name, call.media, wanted if wanted and not is_editor(wanted) else call.media_type)
    mime_type = wanted or (media_type if call.media is not None else "application/octet-stream")
    if call.media is not None and is_editor(mime_type) and mime_type not in IMPORTS.get(media_type, []):
        raise ApiError(400, "Bad Request", "badRequest")
    row = insert_file(
        call.store,
        user,
        name,
        mime_type,
        parent,
        id=_new_id(call),
        drive=drive,
        shortcut_target=_shortcut_target(call, mime_type),
        space="appDataFolder" if "appDataFolder" in (call.body.get("parents") or []) else None,
        **columns_of(call, None),
    )
    if call.media is not None or not is_editor(mime_type):
        keep = bool(call.get("keepRevisionForever"))
        put_content(
            call.store,
            row["id"],
            user,
            call.media or b"",
            media_type if call.media is not None else mime_type,
            name,
            keep,
        )
    _star(call, row, user)
    return answer(call, get_row(call.store, row["id"]))


def _star(call: Call, row: Row, user: str) -> bool:
    if call.body.get("starred") is None:
        return False
    own = call.store.one("SELECT * FROM drive_user_files WHERE file = ? AND user = ?", row["id"], user)
    own = own or {"file": row["id"], "user": user}
    call.store.insert("drive_user_files", replace=True, **{**own, "starred": int(bool(call.body["starred"]))})
    return True


@api.method("drive.files.get")
def get(call: Call) -> Any:
    row = find_file(call)
    if (call.request.first("alt") or "json") == "media":
        from benchflow_service_claw_gdrive.content import download

        return download(call, row)
    return answer(call, row)


@api.method("drive.files.update")
def update(call: Call) -> Answer:
    """Metadata, contents, and where it is."""
    row = find_file(call)
    user = current_user(call)
    if "parents" in call.body:
        text = (
            "The parents field is not directly writable in update requests. "
            "Use the addParents and removeParents parameters instead."
        )
        raise ApiError(403, text, "fieldNotWritable")
    refuse_unwritable(call, ())
    if (
        set(call.body) - {"starred", "viewedByMeTime"}
        or call.media is not None
        or call.get("addParents")
        or call.get("removeParents")
    ):
        must(call, row, "writer")
    columns = columns_of(call, row)
    if call.body.get("trashed") is not None:
        columns |= _trash(call, row, bool(call.body["trashed"]), user)
    if call.get("addParents") or call.get("removeParents"):
        columns |= _move(call, row)
    if row["is_root"] and columns:
        raise insufficient()
    _star(call, row, user)
    modified = columns.pop("modified", None)
    if columns:
        call.store.update("drive_files", {"id": row["id"]}, **columns)
    content = (
        call.media is not None or modified is not None or bool(set(columns) & {"name", "description", "properties"})
    )
    if call.media is not None:
        _replace(call, row, user)
    elif call.body.get("mimeType") and call.body["mimeType"] != row["mime_type"]:
        if is_editor(row["mime_type"]) or is_editor(call.body["mimeType"]):
            raise ApiError(400, "Invalid MIME type change.", "invalid", location="mimeType")
        call.store.update("drive_files", {"id": row["id"]}, mime_type=call.body["mimeType"])
    new = touch(call.store, row["id"], user, modified, content)
    if "trashed" in columns:
        for one in below(call.store, row["id"]):
            log_change(call.store, one)
    return answer(call, new)


def _replace(call: Call, row: Row, user: str) -> None:
    settings = show_file(call, row)["capabilities"]
    if not settings["canModifyContent"]:
        raise ApiError(403, "The file is locked: its content is restricted.", "cannotModifyRestrictedContent")
    if row["mime_type"] in (FOLDER, SHORTCUT):
        raise ApiError(403, "The resource has no content that could be changed.", "fileNotDownloadable")
    wanted = call.body.get("mimeType") or call.media_type
    kind = guess_type(row["name"], call.media, wanted)
    put_content(
        call.store,
        row["id"],
        user,
        call.media or b"",
        kind,
        call.body.get("originalFilename"),
        bool(call.get("keepRevisionForever")),
    )
    content_changed(call.store, row["id"])


def _trash(call: Call, row: Row, trashed: bool, user: str) -> Answer:
    own = "fileOrganizer" if row["drive"] else "owner"
    if bool(row["trashed"]) == trashed:
        return {}
    must(call, row, own)
    if row["is_root"]:
        raise insufficient()
    now = call.store.now_ms() if trashed else None
    return {"trashed": int(trashed), "trashed_time": now, "trashed_by": user if trashed else None}


def _move(call: Call, row: Row) -> Answer:
    added = [part.strip() for part in (call.get("addParents") or "").split(",") if part.strip()]
    removed = [part.strip() for part in (call.get("removeParents") or "").split(",") if part.strip()]
    mine = root_of(call.store, current_user(call))
    removed = [mine if one == "root" else one for one in removed]
    here = row["parent"] or row["drive"]
    for one in removed:
        if one != here:
            raise not_found(one)
    if not added:
        if removed and not row["drive"]:
            raise ApiError(403, "A file must have exactly one parent.", "cannotRemoveParent")
        return {}
    folder, drive = parent_of(call, added)
    target = folder["id"] if folder else drive
    if folder is not None and (
        folder["id"] == row["id"] or folder["id"] in {one["id"] for one in below(call.store, row["id"])}
    ):
        raise ApiError(403, "The requested move would create a cycle of folders.", "invalidParentCycle")
    if target != here and not removed and row["parent"]:
        text = "Increasing the number of parents is not allowed"
        raise ApiError(403, text, "cannotAddParent")
    new_drive = folder["drive"] if folder else drive
    if new_drive != row["drive"]:
        _to_other_drive(call, row, new_drive)
    return {"parent": folder["id"] if folder else None, "drive": new_drive}


def _to_other_drive(call: Call, row: Row, drive: str | None) -> None:
    """Files of a shared drive belong to the drive."""
    if row["mime_type"] == FOLDER and drive and not row["drive"]:
        raise ApiError(403, "Moving folders into shared drives is not supported.", "teamDrivesFolderMoveInNotSupported")
    must(call, row, "fileOrganizer" if row["drive"] else "owner")
    user = current_user(call)
    call.store.update("drive_files", {"id": row["id"]}, owner=None if drive else user)
    call.store.run("DELETE FROM drive_permissions WHERE file = ? AND role = 'owner'", row["id"])
    if not drive:
        from benchflow_service_claw_gdrive.access import add_permission

        add_permission(call.store, row["id"], "user", "owner", user)


@api.method("drive.files.copy")
def copy(call: Call) -> Answer:
    row = find_file(call)
    user = current_user(call)
    if not show_file(call, row)["capabilities"]["canCopy"]:
        raise ApiError(403, "This file cannot be copied by the user.", "cannotCopyFile")
    refuse_unwritable(call, ("parents", "id", "createdTime"))
    given = call.body.get("parents")
    if not given:
        above = call.store.one("SELECT * FROM drive_files WHERE id = ?", row["parent"] or "")
        given = (
            [above["id"]]
            if above and may(call, above, "writer")
            else [row["drive"]]
            if row["drive"] and may(call, row, "writer")
            else []
        )
    parent, drive = parent_of(call, given)
    kind = call.body.get("mimeType") or row["mime_type"]
    if kind != row["mime_type"] and kind not in IMPORTS.get(row["mime_type"], []):
        raise ApiError(400, "Bad Request", "badRequest")
    columns = columns_of(call, None)
    for name in ("description", "properties", "app_properties", "folder_color", "indexable_text"):
        columns.setdefault(name, row[name])
    name = call.body.get("name") or f"Copy of {row['name']}"
    facts = {"id": _new_id(call), "drive": drive, "shortcut_target": row["shortcut_target"], "copied_from": row["id"]}
    new = insert_file(call.store, user, name, kind, parent, **facts, **columns)
    if row["head_revision"]:
        put_content(
            call.store,
            new["id"],
            user,
            file_content(call.store, row),
            row["mime_type"] if not is_editor(row["mime_type"]) else "text/plain",
            name,
        )
    _star(call, new, user)
    return answer(call, get_row(call.store, new["id"]))


@api.method("drive.files.delete")
def delete(call: Call) -> None:
    row = find_file(call)
    if row["is_root"]:
        raise insufficient()
    must(call, row, "organizer" if row["drive"] else "owner")
    remove_tree(call.store, row)


@api.method("drive.files.emptyTrash")
def empty_trash(call: Call) -> None:
    user, drive = current_user(call), call.get("driveId")
    if drive:
        rows = call.store.all("SELECT * FROM drive_files WHERE trashed = 1 AND drive = ?", drive)
        for row in rows:
            must(call, row, "organizer")
    else:
        rows = call.store.all("SELECT * FROM drive_files WHERE trashed = 1 AND owner = ?", user)
    for row in rows:
        if call.store.one("SELECT 1 FROM drive_files WHERE id = ?", row["id"]):
            remove_tree(call.store, row)


@api.method("drive.files.generateIds", writes=True)
def generate_ids(call: Call) -> Answer:
    count = call.get("count", 10)
    if not 1 <= count <= 1000:
        raise ApiError(
            400,
            f"Invalid value '{count}'. Values must be within the range: [1, 1000]",
            "invalidParameter",
            location="count",
        )
    space = call.get("space", "drive")
    if space not in ("drive", "appDataFolder"):
        raise ApiError(400, "Invalid Value", "invalid", location="space")
    ids = ["1" + call.store.new_id("generated", 32, ALPHABET) for _ in range(count)]
    return {"kind": "drive#generatedIds", "space": space, "ids": ids}


def texts(call: Call, row: Row) -> str:
    return " ".join((row["name"], row["description"] or "", row["indexable_text"] or "", file_text(call.store, row)))
