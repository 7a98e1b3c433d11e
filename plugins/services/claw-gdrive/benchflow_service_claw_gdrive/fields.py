"""What of a File body is written where, and what nobody may write."""

from __future__ import annotations

import json
import re
from typing import Any

from benchflow_claw_kit.api import Call
from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.store import Row

from benchflow_service_claw_gdrive.access import current_user, show_user
from benchflow_service_claw_gdrive.times import parse_time, show_time

__all__ = ["columns_of", "refuse_unwritable"]

_WRITABLE = {
    "appProperties",
    "contentHints",
    "contentRestrictions",
    "copyRequiresWriterPermission",
    "description",
    "folderColorRgb",
    "mimeType",
    "modifiedTime",
    "name",
    "originalFilename",
    "properties",
    "starred",
    "trashed",
    "viewersCanCopyContent",
    "viewedByMeTime",
    "writersCanShare",
    "kind",
    "inheritedPermissionsDisabled",
    "downloadRestrictions",
}


def refuse_unwritable(call: Call, also: tuple[str, ...]) -> None:
    """Fields that are only read."""
    wrong = [name for name in call.body if name not in _WRITABLE and name not in also]
    if wrong:
        text = "The resource body includes fields which are not directly writable."
        raise ApiError(403, text, "fieldNotWritable")
    if call.body.get("name") == "":
        call.body["name"] = "Untitled"
    for name in ("name", "description"):
        if len(call.body.get(name) or "") > 32_767:
            raise ApiError(400, f"Invalid value for: {name}: too long", "invalid", location=name)


def columns_of(call: Call, row: Row | None) -> dict[str, Any]:
    body = call.body
    columns: dict[str, Any] = {}
    for field, column in (("name", "name"), ("description", "description"), ("originalFilename", "original_name")):
        if field in body and (row is not None or field != "name"):
            columns[column] = body[field] if body[field] is not None or field != "name" else "Untitled"
    if body.get("modifiedTime"):
        columns["modified"] = parse_time(body["modifiedTime"], "modifiedTime")
    if row is None and body.get("createdTime"):
        columns["created"] = parse_time(body["createdTime"], "createdTime")
    for field, column in (("properties", "properties"), ("appProperties", "app_properties")):
        if field in body:
            columns[column] = _merged(json.loads(row[column]) if row else {}, body[field] or {}, field)
    if body.get("folderColorRgb"):
        if not re.fullmatch(r"#[0-9a-fA-F]{6}", body["folderColorRgb"]):
            raise ApiError(400, "Invalid Value", "invalid", location="folderColorRgb")
        columns["folder_color"] = body["folderColorRgb"].lower()
    hints = body.get("contentHints") or {}
    if hints.get("indexableText") is not None:
        columns["indexable_text"] = hints["indexableText"][:131_072]
    settings = _settings(call, json.loads(row["settings"]) if row else {})
    if settings is not None:
        columns["settings"] = settings
    return columns


def _merged(have: dict[str, str], given: dict[str, str | None], field: str) -> dict[str, str]:
    """A null takes a property away. Key and value together are short, and there are few."""
    merged = {**have, **given}
    result = {key: value for key, value in merged.items() if value is not None}
    for key, value in result.items():
        if not key:
            raise ApiError(400, "Invalid Value", "invalid", location=field)
        if len((key + value).encode("utf-8", "replace")) > 124:
            raise ApiError(403, "The property key and value together exceed 124 bytes.", "propertySizeLimitExceeded")
    if len(result) > 30:
        raise ApiError(403, "The limit of 30 properties per file was exceeded.", "propertyCountLimitExceeded")
    return result


def _settings(call: Call, have: dict[str, Any]) -> dict[str, Any] | None:
    body, new = call.body, dict(have)
    if body.get("viewersCanCopyContent") is not None:
        new["copyRequiresWriterPermission"] = not body["viewersCanCopyContent"]
    for name in ("copyRequiresWriterPermission", "writersCanShare"):
        if body.get(name) is not None:
            new[name] = body[name]
    if body.get("contentRestrictions") is not None:
        new["contentRestrictions"] = [
            _restriction(call, one) for one in body["contentRestrictions"] if one.get("readOnly")
        ]
    return new if new != have else None


def _restriction(call: Call, one: dict[str, Any]) -> dict[str, Any]:
    user = current_user(call)
    shown = {"readOnly": True, "type": "globalContentRestriction", "restrictingUser": show_user(call, user)}
    shown |= {"restrictionTime": show_time(call.store.now_ms()), "ownerRestricted": bool(one.get("ownerRestricted"))}
    return shown | ({"reason": one["reason"]} if one.get("reason") else {})
