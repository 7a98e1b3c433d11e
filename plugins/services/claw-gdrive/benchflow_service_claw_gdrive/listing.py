"""files.list: which files, in which order."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from benchflow_claw_kit.api import Call
from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.store import Row

from benchflow_service_claw_gdrive import query
from benchflow_service_claw_gdrive.access import (
    FOLDER,
    RANK,
    current_user,
    listed_for,
    permissions_on,
    role_of,
    root_of,
)
from benchflow_service_claw_gdrive.api import api
from benchflow_service_claw_gdrive.files import texts
from benchflow_service_claw_gdrive.query import BadQuery, Condition
from benchflow_service_claw_gdrive.show import BRIEF, in_trash, show_file
from benchflow_service_claw_gdrive.times import narrow, page, parse_time

__all__ = ["bad_value"]

Answer = dict[str, Any]
_ORDER = {
    "createdTime",
    "folder",
    "modifiedByMeTime",
    "modifiedTime",
    "name",
    "name_natural",
    "quotaBytesUsed",
    "recency",
    "sharedWithMeTime",
    "starred",
    "viewedByMeTime",
}


def bad_value(location: str) -> ApiError:
    return ApiError(400, "Invalid Value", "invalid", location=location)


@api.method("drive.files.list")
def list_files(call: Call) -> Answer:
    rows = _candidates(call)
    text = call.get("q") or ""
    if text.strip():
        try:
            tree = query.parse(text, query.FILE_TERMS)
        except BadQuery:
            raise bad_value("q") from None
        rows = [row for row in rows if query.matches(tree, lambda c, row=row: _holds(call, row, c))]  # type: ignore[misc]
    rows = _ordered(call, rows)
    question = [
        text,
        call.get("orderBy"),
        call.get("corpora"),
        call.get("driveId"),
        call.get("spaces"),
        current_user(call),
    ]
    found, following = page(call, rows, 100, 1000, question)
    answer: Answer = {"kind": "drive#fileList", "incompleteSearch": False}
    answer["files"] = [narrow(call, show_file(call, row), BRIEF) for row in found]
    return answer | ({"nextPageToken": following} if following else {})


def _candidates(call: Call) -> list[Row]:
    user, corpora, drive = current_user(call), call.get("corpora"), call.get("driveId") or call.get("teamDriveId")
    everywhere = call.get("includeItemsFromAllDrives") or call.get("includeTeamDriveItems")
    if corpora not in (None, "user", "domain", "drive", "allDrives"):
        raise bad_value("corpora")
    if corpora in ("drive", "allDrives") and not (
        everywhere and (call.get("supportsAllDrives") or call.get("supportsTeamDrives"))
    ):
        text = "includeItemsFromAllDrives and supportsAllDrives must be set when shared drives are searched."
        raise ApiError(400, text, "invalid", location="corpora")
    if corpora == "drive" and not drive:
        raise ApiError(
            400, "The driveId parameter must be specified when corpora is drive.", "required", location="driveId"
        )
    if drive and corpora not in (None, "drive"):
        raise bad_value("driveId")
    if drive and not call.store.one("SELECT 1 FROM drive_drives WHERE id = ?", drive):
        raise ApiError(404, f"Shared drive not found: {drive}", "notFound", location="driveId")
    spaces = {part.strip() for part in (call.get("spaces") or "drive").split(",")}
    if not spaces <= {"drive", "appDataFolder", "photos"}:
        raise bad_value("spaces")
    rows = call.store.all("SELECT * FROM drive_files WHERE is_root = 0")
    rows = [row for row in rows if row["space"] in spaces and listed_for(call.store, row, user)]
    if drive:
        return [row for row in rows if row["drive"] == drive]
    return rows if everywhere else [row for row in rows if not row["drive"]]


def _holds(call: Call, row: Row, condition: Condition) -> bool:
    term, operator, value = condition.term, condition.operator, condition.value
    if term in _SIMPLE:
        return _simple(call, row, condition)
    if term in ("modifiedTime", "createdTime", "viewedByMeTime", "sharedWithMeTime"):
        return query.compare(operator, _time(call, row, term), _instant(value))
    if term == "parents":
        return bool(
            (row["parent"] or row["drive"]) == (root_of(call.store, current_user(call)) if value == "root" else value)
        )
    if term in ("owners", "writers", "readers"):
        return _person(call, row, term, value)
    if term in ("properties", "appProperties"):
        have = json.loads(row["properties" if term == "properties" else "app_properties"])
        return bool(have.get(value[0]) == value[1])
    raise BadQuery(term)


_SIMPLE = {
    "name",
    "fullText",
    "mimeType",
    "trashed",
    "starred",
    "sharedWithMe",
    "visibility",
    "shortcutDetails.targetId",
}


def _simple(call: Call, row: Row, condition: Condition) -> bool:
    term, operator, value = condition.term, condition.operator, condition.value
    if term == "fullText":
        return query.text_contains(texts(call, row), value)
    have: Any
    if term == "name":
        if operator == "contains":
            return query.name_contains(row["name"], value)
        have = row["name"]
    elif term == "mimeType":
        if operator == "contains":
            return bool(row["mime_type"].startswith(value) or value in row["mime_type"])
        have = row["mime_type"]
    elif term == "trashed":
        have = in_trash(call, row)
    elif term == "starred":
        have = bool(_mine(call, row).get("starred"))
    elif term == "sharedWithMe":
        have = _shared_with_me(call, row)
    elif term == "visibility":
        have = _visibility(call, row)
    else:
        have = row["shortcut_target"]
    return query.compare(operator, have, value)


def _mine(call: Call, row: Row) -> Row:
    found = call.store.one("SELECT * FROM drive_user_files WHERE file = ? AND user = ?", row["id"], current_user(call))
    return found or {}


def _shared_with_me(call: Call, row: Row) -> bool:
    user = current_user(call)
    if row["owner"] == user or row["drive"]:
        return False
    own = call.store.all("SELECT email FROM drive_permissions WHERE file = ? AND deleted = 0", row["id"])
    return any((one["email"] or "").lower() == user.lower() for one in own)


def _visibility(call: Call, row: Row) -> str:
    listed = permissions_on(call.store, row)
    for kind, discoverable, word in (
        ("anyone", 1, "anyoneCanFind"),
        ("anyone", 0, "anyoneWithLink"),
        ("domain", 1, "domainCanFind"),
        ("domain", 0, "domainWithLink"),
    ):
        if any(one["type"] == kind and one["discoverable"] == discoverable for one in listed):
            return word
    return "limited"


def _person(call: Call, row: Row, term: str, email: str) -> bool:
    email = current_user(call) if email == "me" else email
    if term == "owners":
        return bool((row["owner"] or "").lower() == email.lower())
    role = role_of(call.store, row, email)
    named = any((p["email"] or "").lower() == email.lower() for p in permissions_on(call.store, row))
    return named and role is not None and RANK[role] >= RANK["writer" if term == "writers" else "reader"]


def _time(call: Call, row: Row, term: str) -> int | None:
    if term == "viewedByMeTime":
        return _mine(call, row).get("viewed")
    if term == "sharedWithMeTime":
        user = current_user(call).lower()
        times = [
            p["shared"] for p in permissions_on(call.store, row) if (p["email"] or "").lower() == user and p["shared"]
        ]
        return max(times, default=None)
    return int(row["modified" if term == "modifiedTime" else "created"])


def _instant(text: str) -> int:
    try:
        return parse_time(text)
    except ApiError:
        raise bad_value("q") from None


def _natural(text: str) -> list[Any]:
    return [
        (1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.split(r"(\d{1,18})", text.lower()) if part
    ]


def _ordered(call: Call, rows: list[Row]) -> list[Row]:
    text = call.get("orderBy") or "modifiedTime desc"
    keys: dict[str, Callable[[Row], Any]] = {
        "createdTime": lambda row: row["created"],
        "folder": lambda row: row["mime_type"] != FOLDER,
        "modifiedByMeTime": lambda row: _mine(call, row).get("modified") or 0,
        "modifiedTime": lambda row: row["modified"],
        "recency": lambda row: max(row["modified"], _mine(call, row).get("viewed") or 0),
        "name": lambda row: row["name"].lower(),
        "name_natural": lambda row: _natural(row["name"]),
        "quotaBytesUsed": lambda row: row["size"] or 0,
        "sharedWithMeTime": lambda row: _time(call, row, "sharedWithMeTime") or 0,
        "starred": lambda row: not _mine(call, row).get("starred"),
        "viewedByMeTime": lambda row: _mine(call, row).get("viewed") or 0,
    }
    rows = sorted(rows, key=lambda row: row["id"])
    for part in reversed(text.split(",")):
        name, _, direction = part.strip().partition(" ")
        if name not in _ORDER or direction.strip() not in ("", "desc", "asc"):
            raise bad_value("orderBy")
        rows.sort(key=keys[name], reverse=direction.strip() == "desc")
    return rows
