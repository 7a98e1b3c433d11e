"""The bytes of a file: download with ranges, export."""

from __future__ import annotations

import re

from benchflow_claw_kit.api import Call
from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.http import Response
from benchflow_claw_kit.store import Row

from benchflow_service_claw_gdrive.access import find_file
from benchflow_service_claw_gdrive.api import api
from benchflow_service_claw_gdrive.formats import EXPORTS, export, is_editor
from benchflow_service_claw_gdrive.show import show_file
from benchflow_service_claw_gdrive.state import file_content, file_text

__all__ = ["download", "ranged"]

MAX_EXPORT = 10 * 1024 * 1024


def download(call: Call, row: Row) -> Response:
    if is_editor(row["mime_type"]):
        text = "Only files with binary content can be directly downloaded. Use Export with Docs Editors files."
        raise ApiError(403, text, "fileNotDownloadable", location="alt")
    if not show_file(call, row)["capabilities"]["canDownload"]:
        raise ApiError(403, "This file cannot be downloaded by the user.", "cannotDownloadFile")
    return ranged(call, file_content(call.store, row), row["mime_type"])


def ranged(call: Call, content: bytes, mime_type: str) -> Response:
    """`Range: bytes=a-b`, one range; what cannot be met is 416."""
    headers = {"Content-Type": mime_type, "Accept-Ranges": "bytes"}
    asked = call.request.header("range")
    found = re.fullmatch(r"\s*bytes\s*=\s*(\d{0,18})\s*-\s*(\d{0,18})\s*", asked) if asked else None
    if found is None or not (found[1] or found[2]):
        return Response(200, content, headers)
    size = len(content)
    if found[1]:
        start, end = int(found[1]), min(int(found[2]) if found[2] else size - 1, size - 1)
    else:
        start, end = max(0, size - int(found[2])), size - 1
    if start >= size or start > end:
        return Response(416, b"", {**headers, "Content-Range": f"bytes */{size}"})
    return Response(206, content[start : end + 1], {**headers, "Content-Range": f"bytes {start}-{end}/{size}"})


@api.method("drive.files.export")
def export_file(call: Call) -> Response:
    row = find_file(call)
    kind, wanted = row["mime_type"], call.get("mimeType", "")
    if kind not in EXPORTS:
        raise ApiError(403, "Export only supports Docs Editors files.", "fileNotExportable")
    if wanted not in EXPORTS[kind]:
        raise ApiError(400, "The requested conversion is not supported.", "badRequest", location="convertTo")
    if not show_file(call, row)["capabilities"]["canDownload"]:
        raise ApiError(403, "This file cannot be exported by the user.", "cannotDownloadFile")
    content = export(file_text(call.store, row), kind, wanted)
    if content is None:
        raise ApiError(501, f"This service does not export to {wanted}.", "notImplemented")
    if len(content) > MAX_EXPORT:
        raise ApiError(403, "This file is too large to be exported.", "exportSizeLimitExceeded")
    return Response(200, content, {"Content-Type": wanted})
