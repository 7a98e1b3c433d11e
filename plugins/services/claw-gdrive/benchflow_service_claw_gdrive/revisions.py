"""revisions.*"""

from __future__ import annotations

from typing import Any

from benchflow_claw_kit.api import Call
from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.store import Row

from benchflow_service_claw_gdrive.access import find_file, not_found, show_user
from benchflow_service_claw_gdrive.api import api
from benchflow_service_claw_gdrive.content import ranged
from benchflow_service_claw_gdrive.formats import EXPORTS, is_editor
from benchflow_service_claw_gdrive.state import file_content
from benchflow_service_claw_gdrive.times import narrow, page, show_time

__all__: list[str] = []

Answer = dict[str, Any]
BRIEF = ("kind", "id", "mimeType", "modifiedTime")


def _file(call: Call, role: str = "writer") -> Row:
    row = find_file(call, role=role)
    if row["head_revision"] is None:
        raise ApiError(403, "The file does not support revisions.", "revisionsNotSupported")
    return row


def _find(call: Call, file: Row) -> Row:
    wanted = file["head_revision"] if call["revisionId"] == "head" else call["revisionId"]
    row = call.store.one("SELECT * FROM drive_revisions WHERE file = ? AND id = ?", file["id"], wanted)
    if row is None:
        raise not_found(call["revisionId"], "Revision", "revisionId")
    return row


def _show(call: Call, row: Row) -> Answer:
    shown: Answer = {
        "kind": "drive#revision",
        "id": row["id"],
        "mimeType": row["mime_type"],
        "modifiedTime": show_time(row["modified"]),
        "published": bool(row["published"]),
        "lastModifyingUser": show_user(call, row["modified_by"]),
    }
    if is_editor(row["mime_type"]):
        links = {
            kind: f"https://docs.google.com/feeds/download/{row['file']}?revision={row['id']}&mime={kind}"
            for kind in EXPORTS.get(row["mime_type"], [])
        }
        shown |= {
            "publishAuto": bool(row["publish_auto"]),
            "publishedOutsideDomain": bool(row["outside_domain"]),
            "exportLinks": links,
        }
        return shown
    names = {"md5Checksum": row["md5"], "size": str(row["size"]), "originalFilename": row["original_name"]}
    return shown | names | {"keepForever": bool(row["keep_forever"])}


@api.method("drive.revisions.list")
def list_revisions(call: Call) -> Answer:
    file = _file(call)
    rows = call.store.all("SELECT * FROM drive_revisions WHERE file = ? ORDER BY number", file["id"])
    found, following = page(call, rows, 200, 1000, file["id"])
    answer: Answer = {
        "kind": "drive#revisionList",
        "revisions": [narrow(call, _show(call, row), BRIEF) for row in found],
    }
    return answer | ({"nextPageToken": following} if following else {})


@api.method("drive.revisions.get")
def get(call: Call) -> Any:
    file = _file(call)
    row = _find(call, file)
    if (call.request.first("alt") or "json") == "media":
        if is_editor(row["mime_type"]):
            text = "Only files with binary content can be directly downloaded. Use Export with Docs Editors files."
            raise ApiError(403, text, "fileNotDownloadable", location="alt")
        return ranged(call, file_content(call.store, file, row["id"]), row["mime_type"])
    return narrow(call, _show(call, row), BRIEF)


@api.method("drive.revisions.update")
def update(call: Call) -> Answer:
    file = _file(call)
    row = _find(call, file)
    names = {
        "keepForever": "keep_forever",
        "published": "published",
        "publishAuto": "publish_auto",
        "publishedOutsideDomain": "outside_domain",
    }
    if set(call.body) - set(names) - {"kind"}:
        raise ApiError(403, "The resource body includes fields which are not directly writable.", "fieldNotWritable")
    editor = is_editor(row["mime_type"])
    if editor and "keepForever" in call.body:
        raise ApiError(403, "keepForever is only for files with binary content.", "fieldNotWritable")
    if not editor and set(call.body) & {"published", "publishAuto", "publishedOutsideDomain"}:
        raise ApiError(403, "Only Docs Editors files can be published.", "cannotPublish")
    columns = {column: int(bool(call.body[name])) for name, column in names.items() if name in call.body}
    if columns:
        call.store.update("drive_revisions", {"file": file["id"], "id": row["id"]}, **columns)
    return narrow(call, _show(call, _find(call, file)), BRIEF)


@api.method("drive.revisions.delete")
def delete(call: Call) -> None:
    """Not the last one, and none of Google's own kinds."""
    file = _file(call)
    row = _find(call, file)
    if is_editor(row["mime_type"]):
        raise ApiError(403, "This file does not support deletion of revisions.", "revisionDeletionNotSupported")
    others = call.store.all(
        "SELECT * FROM drive_revisions WHERE file = ? AND id != ? ORDER BY number", file["id"], row["id"]
    )
    if not others:
        raise ApiError(400, "The only revision of a file cannot be deleted.", "cannotDeleteOnlyRevision")
    call.store.delete("drive_revisions", file=file["id"], id=row["id"])
    if row["id"] == file["head_revision"]:
        last = others[-1]
        facts = {"head_revision": last["id"], "size": last["size"], "md5": last["md5"], "mime_type": last["mime_type"]}
        call.store.update("drive_files", {"id": file["id"]}, **facts)
