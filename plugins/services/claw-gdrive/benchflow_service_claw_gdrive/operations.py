"""files.download with operations.get, and apps.*"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode

from benchflow_claw_kit.api import Call
from benchflow_claw_kit.errors import ApiError

from benchflow_service_claw_gdrive.access import ALPHABET, FOLDER, current_user, find_file, not_found
from benchflow_service_claw_gdrive.api import api
from benchflow_service_claw_gdrive.formats import EXPORTS, is_editor
from benchflow_service_claw_gdrive.show import show_file

__all__: list[str] = []

Answer = dict[str, Any]
_TYPE = "type.googleapis.com/google.apps.drive.v3.DownloadFile"


@api.method("drive.files.download")
def download(call: Call) -> Answer:
    """Done at once: the answer is an address of this service that gives the bytes."""
    row, wanted, revision = find_file(call), call.get("mimeType"), call.get("revisionId")
    if row["mime_type"] == FOLDER:
        raise ApiError(403, "Only files with content can be downloaded.", "fileNotDownloadable")
    if not show_file(call, row)["capabilities"]["canDownload"]:
        raise ApiError(403, "This file cannot be downloaded by the user.", "cannotDownloadFile")
    path = f"/drive/v3/files/{quote(row['id'])}"
    if is_editor(row["mime_type"]):
        kinds = EXPORTS.get(row["mime_type"], [])
        if revision or (wanted and wanted not in kinds) or not kinds:
            raise ApiError(400, "The requested conversion is not supported.", "badRequest", location="mimeType")
        path += "/export?" + urlencode({"mimeType": wanted or kinds[0]})
    elif wanted:
        raise ApiError(400, "mimeType is for Google Workspace documents only.", "invalid", location="mimeType")
    elif revision:
        sql = "SELECT 1 FROM drive_revisions WHERE file = ? AND id = ?"
        if call.store.one(sql, row["id"], revision) is None:
            raise not_found(revision, "Revision", "revisionId")
        path += f"/revisions/{quote(revision)}?alt=media"
    else:
        path += "?alt=media"
    name = call.store.new_id("operation", 32, ALPHABET)
    uri = f"http://{call.request.header('host', 'localhost')}{path}"
    response = {"@type": f"{_TYPE}Response", "downloadUri": uri, "partialDownloadAllowed": "export?" not in path}
    metadata = {"@type": f"{_TYPE}Metadata", "resourceKey": ""}
    value = {"name": name, "metadata": metadata, "done": True, "response": response}
    call.store.insert("drive_operations", name=name, user=current_user(call), created=call.store.now_ms(), data=value)
    return value


@api.method("drive.operations.get")
def get_operation(call: Call) -> Answer:
    """Of one's own, for a day."""
    since = call.store.now_ms() - 86_400_000
    sql = "SELECT data FROM drive_operations WHERE name = ? AND user = ? AND created >= ?"
    found = call.store.value(sql, call["name"], current_user(call), since)
    if found is None:
        raise not_found(call["name"], "Operation", "name")
    value: Answer = json.loads(found)
    return value


@api.method("drive.apps.list")
def list_apps(call: Call) -> Answer:
    rows = [_app(row["data"]) for row in call.store.all("SELECT data FROM drive_apps ORDER BY id")]
    kinds = set((call.get("appFilterMimeTypes") or "").split(",")) - {""}
    endings = set((call.get("appFilterExtensions") or "").split(",")) - {""}
    if kinds or endings:
        rows = [
            one
            for one in rows
            if kinds & {*one.get("primaryMimeTypes", []), *one.get("secondaryMimeTypes", [])}
            or endings & {*one.get("primaryFileExtensions", []), *one.get("secondaryFileExtensions", [])}
        ]
    default = [one["id"] for one in rows if one.get("useByDefault")]
    return {"kind": "drive#appList", "items": rows, "defaultAppIds": default}


@api.method("drive.apps.get")
def get_app(call: Call) -> Answer:
    found = call.store.value("SELECT data FROM drive_apps WHERE id = ?", call["appId"])
    if found is None:
        raise not_found(call["appId"], "App", "appId")
    return _app(found)


def _app(data: str) -> Answer:
    return {"kind": "drive#app", "installed": True, "authorized": True, "objectType": "file", **json.loads(data)}
