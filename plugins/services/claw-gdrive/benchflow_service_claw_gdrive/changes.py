"""changes.*, watching, channels.stop, about."""

from __future__ import annotations

import json
from typing import Any

from benchflow_claw_kit.api import Call
from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.store import Row

from benchflow_service_claw_gdrive.access import current_user, find_file, role_of, show_user
from benchflow_service_claw_gdrive.api import api
from benchflow_service_claw_gdrive.drives import show_drive
from benchflow_service_claw_gdrive.formats import EXPORTS, IMPORTS
from benchflow_service_claw_gdrive.show import BRIEF, show_file
from benchflow_service_claw_gdrive.times import narrow, require_fields, show_time

__all__: list[str] = []

Answer = dict[str, Any]
_CHANGE = ("kind", "changeType", "type", "time", "removed", "fileId", "file", "driveId", "drive")


def _latest(call: Call) -> int:
    return int(call.store.value("SELECT max(seq) FROM drive_changes") or 0)


@api.method("drive.changes.getStartPageToken")
def start_page_token(call: Call) -> Answer:
    return {"kind": "drive#startPageToken", "startPageToken": str(_latest(call) + 1)}


def _token(call: Call) -> int:
    text = call.get("pageToken") or ""
    if not text.isdigit() or not 1 <= int(text) <= _latest(call) + 1:
        raise ApiError(400, "Invalid Value", "invalid", location="pageToken")
    return int(text)


@api.method("drive.changes.list")
def list_changes(call: Call) -> Answer:
    """The latest change of each item since the token, oldest first."""
    start = _token(call)
    size = call.get("pageSize", 100)
    if not 1 <= size <= 1000:
        text = f"Invalid value '{size}'. Values must be within the range: [1, 1000]"
        raise ApiError(400, text, "invalidParameter", location="pageSize")
    rows = call.store.all("SELECT * FROM drive_changes WHERE seq >= ? ORDER BY seq", start)
    shown: list[Answer] = []
    following = None
    for row in rows:
        one = _show(call, row)
        if one is None:
            continue
        if len(shown) == size:
            following = str(row["seq"])
            break
        shown.append(narrow(call, one, _CHANGE))
    answer: Answer = {"kind": "drive#changeList", "changes": shown}
    return answer | ({"nextPageToken": following} if following else {"newStartPageToken": str(_latest(call) + 1)})


def _show(call: Call, change: Row) -> Answer | None:
    user = current_user(call)
    everywhere = call.get("includeItemsFromAllDrives") or call.get("includeTeamDriveItems")
    if change["drive"] and not everywhere:
        return None
    if call.get("driveId") and change["drive"] != call.get("driveId"):
        return None
    shown: Answer = {"kind": "drive#change", "time": show_time(change["time"])}
    if change["kind"] == "drive":
        row = call.store.one("SELECT * FROM drive_drives WHERE id = ?", change["item"])
        shown |= {
            "changeType": "drive",
            "type": "drive",
            "driveId": change["item"],
            "teamDriveId": change["item"],
            "removed": row is None,
        }
        return shown | ({"drive": show_drive(call, row)} if row else {})
    shown |= {"changeType": "file", "type": "file", "fileId": change["item"]}
    row = call.store.one("SELECT * FROM drive_files WHERE id = ?", change["item"])
    if row is not None and role_of(call.store, row, user):
        file = show_file(call, row)
        return shown | {"removed": False, "file": narrow(call, file, BRIEF)}
    if user not in json.loads(change["readers"]) or call.get("includeRemoved") is False:
        return None
    return shown | {"removed": True}


# -- watching: channels are kept and can be stopped; nothing is sent


def _watch(call: Call, watched: str) -> Answer:
    body = call.body
    if not body.get("id"):
        raise ApiError(400, "The channel id is required.", "required", location="id")
    if body.get("type") not in ("web_hook", "webhook"):
        raise ApiError(400, "Unknown channel type", "invalid", location="type")
    if not str(body.get("address", "")).startswith("https://"):
        raise ApiError(
            400, "WebHook callback must be HTTPS: " + str(body.get("address", "")), "push.webhookUrlNotHttps"
        )
    if call.store.one("SELECT 1 FROM drive_channels WHERE id = ?", body["id"]):
        raise ApiError(400, f"Channel id {body['id']} not unique", "channelIdNotUnique")
    resource = call.store.new_id(
        "channel resource", 27, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    )
    expires = int(body.get("expiration") or call.store.now_ms() + 3_600_000)
    facts = {"id": body["id"], "resource": resource, "address": body["address"], "token": body.get("token")}
    call.store.insert("drive_channels", expiration=expires, watched=watched, **facts)
    shown = {"kind": "api#channel", "id": body["id"], "resourceId": resource, "expiration": str(expires)}
    shown["resourceUri"] = f"https://www.googleapis.com/drive/v3/{watched}?alt=json"
    return shown | ({"token": body["token"]} if body.get("token") else {})


@api.method("drive.files.watch")
def watch_file(call: Call) -> Answer:
    return _watch(call, f"files/{find_file(call)['id']}")


@api.method("drive.changes.watch")
def watch_changes(call: Call) -> Answer:
    return _watch(call, f"changes?pageToken={_token(call)}")


@api.method("drive.channels.stop")
def stop(call: Call) -> None:
    gone = call.store.delete("drive_channels", id=call.body.get("id") or "", resource=call.body.get("resourceId") or "")
    if not gone:
        text = f"Channel '{call.body.get('id')}' not found for project 'claw'"
        raise ApiError(404, text, "notFound")


@api.method("drive.about.get")
def about(call: Call) -> Answer:
    require_fields(call)
    user = current_user(call)
    used = "SELECT sum(r.size) FROM drive_revisions r JOIN drive_files f ON f.id = r.file WHERE f.owner = ?"
    total = int(call.store.value(used, user) or 0)
    trash = int(call.store.value(used + " AND f.trashed = 1", user) or 0)
    limit = call.store.value("SELECT quota FROM drive_users WHERE email = ?", user)
    quota = {"limit": str(limit), "usage": str(total), "usageInDrive": str(total), "usageInDriveTrash": str(trash)}
    return {
        "kind": "drive#about",
        "user": show_user(call, user),
        "storageQuota": quota,
        "importFormats": IMPORTS,
        "exportFormats": EXPORTS,
        "maxImportSizes": dict.fromkeys(EXPORTS, "10485760"),
        "maxUploadSize": "5242880000000",
        "appInstalled": True,
        "canCreateDrives": True,
        "canCreateTeamDrives": True,
        "folderColorPalette": ["#ac725e", "#d06b64", "#f83a22", "#fa573c", "#ff7537", "#ffad46", "#42d692", "#16a765"],
        "driveThemes": [],
        "teamDriveThemes": [],
    }
