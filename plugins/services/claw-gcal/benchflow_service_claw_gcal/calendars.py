"""calendars and calendarList."""

from __future__ import annotations

import json
import re
from typing import Any

from benchflow_claw_kit import ApiError, Call, Row, Store, invalid, not_found, required

from benchflow_service_claw_gcal.access import (
    DEFAULT_ZONE,
    ROLES,
    Calendar,
    calendar_of,
    create_calendar,
    etag,
    find_calendar,
    grant,
    next_version,
    user_of,
)
from benchflow_service_claw_gcal.colors import CALENDAR_COLORS, color_of
from benchflow_service_claw_gcal.contract import api
from benchflow_service_claw_gcal.preconditions import check_match
from benchflow_service_claw_gcal.syncing import page_of
from benchflow_service_claw_gcal.times import zone

_EDITABLE = ("summary", "description", "location", "timeZone", "autoAcceptInvitations", "conferenceProperties")


def calendar_json(calendar: Calendar) -> dict[str, Any]:
    value = {
        "kind": "calendar#calendar",
        "etag": etag(calendar.version),
        "id": calendar.id,
        "summary": calendar.summary,
        "timeZone": calendar.time_zone,
        "dataOwner": None if calendar.is_primary else calendar.owner,
        "conferenceProperties": {"allowedConferenceSolutionTypes": ["hangoutsMeet"]},
        **calendar.data,
    }
    return {name: item for name, item in value.items() if item is not None}


@api.method("calendar.calendars.get")
def get_calendar(call: Call) -> dict[str, Any]:
    return calendar_json(calendar_of(call))


@api.method("calendar.calendars.insert")
def insert_calendar(call: Call) -> dict[str, Any]:
    user = user_of(call)
    body = {name: call.body[name] for name in _EDITABLE if call.body.get(name) is not None}
    if not str(body.get("summary", "")).strip():
        raise ApiError(400, "Missing summary.", "required")
    body.setdefault("timeZone", _own_zone(call.store, user))
    zone(body["timeZone"])
    id = f"c_{call.store.new_id('calendar', 52)}@group.calendar.google.com"
    create_calendar(call.store, id, user, body)
    made = find_calendar(call.store, id, user)
    assert made is not None
    return calendar_json(made)


def _own_zone(store: Store, user: str) -> str:
    return str(store.value("SELECT time_zone FROM calendars WHERE id = ?", user) or DEFAULT_ZONE)


def _change(call: Call, whole: bool) -> dict[str, Any]:
    calendar = calendar_of(call, "owner")
    check_match(call, etag(calendar.version))
    given = {name: call.body[name] for name in _EDITABLE if name in call.body}
    if whole and not given.get("summary"):
        raise ApiError(400, "Missing summary.", "required")
    if given.get("timeZone"):
        zone(given["timeZone"])
    data = {} if whole else dict(calendar.data)
    data |= {name: value for name, value in given.items() if name not in ("summary", "timeZone")}
    call.store.update(
        "calendars",
        {"id": calendar.id},
        summary=given.get("summary") or calendar.summary,
        time_zone=given.get("timeZone") or calendar.time_zone,
        data={name: value for name, value in data.items() if value is not None},
        version=next_version(call.store),
    )
    _touch_entries(call.store, calendar.id)
    return calendar_json(calendar_of(call))


def _touch_entries(store: Store, calendar: str) -> None:
    for row in store.all("SELECT user FROM calendar_list WHERE calendar_id = ?", calendar):
        store.update("calendar_list", {"user": row["user"], "calendar_id": calendar}, version=next_version(store))


@api.method("calendar.calendars.update")
def update_calendar(call: Call) -> dict[str, Any]:
    return _change(call, whole=True)


@api.method("calendar.calendars.patch")
def patch_calendar(call: Call) -> dict[str, Any]:
    return _change(call, whole=False)


@api.method("calendar.calendars.delete")
def delete_calendar(call: Call) -> None:
    calendar = calendar_of(call, "owner")
    if calendar.is_primary:
        raise ApiError(400, "Cannot delete primary calendar", "cannotDeletePrimaryCalendar", domain="calendar")
    check_match(call, etag(calendar.version))
    for row in call.store.all("SELECT user FROM calendar_list WHERE calendar_id = ?", calendar.id):
        _remove_entry(call.store, row["user"], calendar.id)
    for table in ("events", "acl"):
        call.store.delete(table, calendar_id=calendar.id)
    call.store.delete("calendars", id=calendar.id)


@api.method("calendar.calendars.clear")
def clear_calendar(call: Call) -> None:
    """All events of a primary calendar; what was synced before is of no use after."""
    calendar = calendar_of(call, "owner")
    if not calendar.is_primary:
        raise ApiError(400, "Only primary calendars can be cleared", "invalid")
    call.store.delete("events", calendar_id=calendar.id)
    call.store.update("calendars", {"id": calendar.id}, sync_floor=next_version(call.store))


@api.method("calendar.calendars.transferOwnership")
def transfer_ownership(call: Call) -> None:
    """By the world's first user, who is the organization's administrator; who had it keeps managing it."""
    user, new = user_of(call), str(call.get("newDataOwner", "")).lower()
    if not call.get("useAdminAccess"):
        raise invalid("Only useAdminAccess=true is supported.", "useAdminAccess")
    if user != call.store.value("SELECT email FROM users ORDER BY position LIMIT 1"):
        raise ApiError(403, "The user is not an administrator who may manage calendars.", "forbidden")
    calendar = find_calendar(call.store, call["calendarId"], user, admin=True)
    if calendar is None:
        raise not_found("Not Found")
    if calendar.is_primary:
        raise invalid("A primary calendar cannot be transferred.", "calendarId")
    known = call.store.one("SELECT 1 FROM users WHERE email = ?", new)
    if known is None or new.rpartition("@")[2] != calendar.owner.rpartition("@")[2]:
        raise invalid("The new data owner is not a user of this organization.", "newDataOwner")
    call.store.update("calendars", {"id": calendar.id}, owner=new, version=next_version(call.store))
    grant(call.store, calendar.id, "owner", "user", new)
    listed = "SELECT deleted FROM calendar_list WHERE user = ? AND calendar_id = ?"
    if call.store.value(listed, new, calendar.id) != 0:
        facts = {"data": {"colorId": "20", "selected": True}, "deleted": 0, "version": next_version(call.store)}
        call.store.insert("calendar_list", True, user=new, calendar_id=calendar.id, **facts)
    _touch_entries(call.store, calendar.id)


# -- calendarList

_LIST_EDITABLE = (
    *("summaryOverride", "colorId", "backgroundColor", "foregroundColor", "hidden", "selected", "defaultReminders"),
    "notificationSettings",
)


def entry_json(store: Store, row: Row, user: str) -> dict[str, Any]:
    if row["deleted"]:
        return {
            "kind": "calendar#calendarListEntry",
            "etag": etag(row["version"]),
            "id": row["calendar_id"],
            "deleted": True,
        }
    calendar = find_calendar(store, row["calendar_id"], user)
    assert calendar is not None
    data = json.loads(row["data"])
    color = CALENDAR_COLORS.get(data.get("colorId", "14"), CALENDAR_COLORS["14"])
    value: dict[str, Any] = {
        "kind": "calendar#calendarListEntry",
        "etag": etag(row["version"]),
        "id": calendar.id,
        "summary": calendar.summary,
        **{name: item for name, item in calendar.data.items() if name in ("description", "location")},
        "timeZone": calendar.time_zone,
        "backgroundColor": color["background"],
        "foregroundColor": "#000000",
        "accessRole": calendar.role,
        "dataOwner": None if calendar.is_primary else calendar.owner,
        "defaultReminders": [],
        "conferenceProperties": {"allowedConferenceSolutionTypes": ["hangoutsMeet"]},
        **data,
    }
    if calendar.id == user:
        value["primary"] = True
    return {name: item for name, item in value.items() if item is not None}


def _entry(call: Call) -> tuple[Row, str]:
    user = user_of(call)
    id = user if call["calendarId"] == "primary" else call["calendarId"]
    row = call.store.one("SELECT * FROM calendar_list WHERE user = ? AND calendar_id = ?", user, id)
    if row is None or row["deleted"] or find_calendar(call.store, id, user) is None:
        raise not_found("Not Found")
    return row, user


@api.method("calendar.calendarList.get")
def get_entry(call: Call) -> dict[str, Any]:
    row, user = _entry(call)
    return entry_json(call.store, row, user)


@api.method("calendar.calendarList.list")
def list_entries(call: Call) -> dict[str, Any]:
    user = user_of(call)
    rows = call.store.all("SELECT rowid, * FROM calendar_list WHERE user = ? ORDER BY rowid", user)
    least = call.get("minAccessRole", "freeBusyReader")

    def wanted(row: Row, syncing: bool) -> bool:
        if row["deleted"]:
            return bool(syncing or call.get("showDeleted"))
        calendar = find_calendar(call.store, row["calendar_id"], user)
        if calendar is None or ROLES.index(calendar.role) < ROLES.index(least):
            return False
        return bool(syncing or call.get("showHidden") or not json.loads(row["data"]).get("hidden"))

    rows, beside = page_of(call, f"calendarList:{user}", rows, wanted, 100, 250)
    return {"kind": "calendar#calendarList", **beside, "items": [entry_json(call.store, row, user) for row in rows]}


@api.method("calendar.calendarList.insert")
def insert_entry(call: Call) -> dict[str, Any]:
    user = user_of(call)
    id = call.body.get("id")
    if not id:
        raise required("id", "other")
    calendar = find_calendar(call.store, str(id), user)
    if calendar is None:
        raise not_found("Not Found")
    old = call.store.one("SELECT * FROM calendar_list WHERE user = ? AND calendar_id = ?", user, calendar.id)
    data = {"colorId": "20", "selected": True, **(json.loads(old["data"]) if old and not old["deleted"] else {})}
    data |= _list_fields(call)
    call.store.insert(
        "calendar_list",
        True,
        user=user,
        calendar_id=calendar.id,
        data=data,
        deleted=0,
        version=next_version(call.store),
    )
    row = call.store.one("SELECT * FROM calendar_list WHERE user = ? AND calendar_id = ?", user, calendar.id)
    assert row is not None
    return entry_json(call.store, row, user)


def _list_fields(call: Call) -> dict[str, Any]:
    given = {name: call.body[name] for name in _LIST_EDITABLE if name in call.body}
    if given.get("colorId") is not None and given["colorId"] not in CALENDAR_COLORS:
        raise invalid("Invalid color id value.", "colorId")
    for reminder in given.get("defaultReminders") or []:
        check_reminder(reminder)
    rgb = [given.get(name) for name in ("backgroundColor", "foregroundColor") if given.get(name)]
    if any(not re.fullmatch(r"#[0-9a-fA-F]{6}", str(one)) for one in rgb):
        raise invalid("Invalid RGB color.", "backgroundColor")
    if not call.get("colorRgbFormat"):
        given.pop("backgroundColor", None)
        given.pop("foregroundColor", None)
    elif given.get("backgroundColor"):
        given["colorId"] = color_of(given["backgroundColor"])
    return given


def check_reminder(reminder: dict[str, Any]) -> None:
    if reminder.get("method") not in ("email", "popup"):
        raise invalid("Invalid reminder method.", None)
    if "minutes" not in reminder or not 0 <= reminder["minutes"] <= 40320:
        raise invalid("Invalid reminder time.", None)


def _change_entry(call: Call, whole: bool) -> dict[str, Any]:
    row, user = _entry(call)
    check_match(call, etag(row["version"]))
    old = json.loads(row["data"])
    base = {name: old[name] for name in ("colorId", "selected") if name in old} if whole else old
    data = {name: value for name, value in {**base, **_list_fields(call)}.items() if value is not None}
    call.store.update(
        "calendar_list", {"user": user, "calendar_id": row["calendar_id"]}, data=data, version=next_version(call.store)
    )
    return entry_json(call.store, _entry(call)[0], user)


@api.method("calendar.calendarList.update")
def update_entry(call: Call) -> dict[str, Any]:
    return _change_entry(call, whole=True)


@api.method("calendar.calendarList.patch")
def patch_entry(call: Call) -> dict[str, Any]:
    return _change_entry(call, whole=False)


@api.method("calendar.calendarList.delete")
def delete_entry(call: Call) -> None:
    row, user = _entry(call)
    if row["calendar_id"] == user:
        raise ApiError(400, "Cannot remove primary calendar", "cannotDeletePrimaryCalendar", domain="calendar")
    _remove_entry(call.store, user, row["calendar_id"])


def _remove_entry(store: Store, user: str, calendar: str) -> None:
    store.update("calendar_list", {"user": user, "calendar_id": calendar}, deleted=1, version=next_version(store))
