"""Changing events: insert, import, patch, update, delete, move, quickAdd."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from benchflow_claw_kit import ApiError, Call, not_found

from benchflow_service_claw_gcal.access import Calendar, calendar_of, etag, find_calendar, need
from benchflow_service_claw_gcal.book import CalendarEvent, exceptions, save, share, stored
from benchflow_service_claw_gcal.contract import api
from benchflow_service_claw_gcal.events import event_json, event_of
from benchflow_service_claw_gcal.preconditions import check_match
from benchflow_service_claw_gcal.quickadd import parse_text
from benchflow_service_claw_gcal.recurrence import instance_key, occurrences
from benchflow_service_claw_gcal.rules import checked, merged, new_data

SHARED = ("summary", "description", "location", "start", "end", "recurrence", "attachments", "conferenceData")
_ID = re.compile(r"[a-v0-9]{5,1024}")
_STATUSES = ("confirmed", "tentative", "cancelled")


def new_event_id(call: Call) -> str:
    return call.store.new_id("event", 26, "0123456789abcdefghijklmnopqrstuv")


def _person(call: Call, email: str) -> dict[str, Any]:
    name = call.store.value("SELECT name FROM users WHERE email = ?", email)
    return {"email": email, **({"displayName": name} if name else {})}


def _organizer(call: Call, calendar: Calendar) -> dict[str, Any]:
    if calendar.is_primary:
        return _person(call, calendar.owner)
    return {"email": calendar.id, "displayName": calendar.summary}


def _status(call: Call, default: str) -> str:
    status = call.body.get("status") or default
    if status not in _STATUSES:
        raise ApiError(400, "Invalid status value.", "invalid")
    return str(status)


def place(call: Call, calendar: Calendar, data: dict[str, Any], id: str, uid: str | None = None) -> CalendarEvent:
    """A new event of this calendar, on its way to those invited."""
    data = checked(call, data, calendar)
    data["creator"] = _person(call, calendar.user)
    data["organizer"] = _organizer(call, calendar)
    event = CalendarEvent(
        calendar_id=calendar.id,
        id=id,
        data=data,
        status=_status(call, "confirmed"),
        ical_uid=uid or f"{id}@google.com",
        organizer=calendar.id,
        sequence=int(call.body.get("sequence") or 0),
    )
    event = save(call.store, event, calendar.time_zone)
    share(call.store, event, calendar.time_zone)
    return event


@api.method("calendar.events.insert")
def insert_event(call: Call) -> dict[str, Any]:
    calendar = calendar_of(call, "writer")
    id = call.body.get("id") or new_event_id(call)
    if not _ID.fullmatch(id):
        raise ApiError(400, "Invalid resource id value.", "invalid")
    if stored(call.store, calendar.id, id):
        raise ApiError(409, "The requested identifier already exists.", "duplicate")
    return event_json(place(call, calendar, new_data(call), id, call.body.get("iCalUID")), calendar, call)


@api.method("calendar.events.import")
def import_event(call: Call) -> dict[str, Any]:
    """A private copy of somebody's event; the same iCalUID again is an update of it."""
    calendar = calendar_of(call, "writer")
    uid = call.body.get("iCalUID")
    if not uid:
        raise ApiError(400, "Missing iCalUID.", "required")
    row = call.store.one(
        "SELECT id FROM events WHERE calendar_id = ? AND ical_uid = ? AND recurring_event_id IS NULL", calendar.id, uid
    )
    old = stored(call.store, calendar.id, row["id"]) if row else None
    data = checked(call, new_data(call), calendar)
    data["creator"] = _person(call, calendar.user)
    data["organizer"] = call.body.get("organizer") or _organizer(call, calendar)
    data["organizer"] = {name: value for name, value in data["organizer"].items() if name in ("email", "displayName")}
    event = CalendarEvent(
        calendar_id=calendar.id,
        id=old.id if old else "_" + new_event_id(call),
        data=data,
        status=_status(call, "confirmed"),
        ical_uid=uid,
        organizer=str(data["organizer"].get("email", calendar.id)).lower(),
        sequence=int(call.body.get("sequence") or 0),
        created_ms=old.created_ms if old else 0,
    )
    return event_json(save(call.store, event, calendar.time_zone), calendar, call)


@api.method("calendar.events.quickAdd")
def quick_add(call: Call) -> dict[str, Any]:
    calendar = calendar_of(call, "writer")
    data = parse_text(call.get("text", ""), call.store.now_ms(), calendar.time_zone)
    return event_json(place(call, calendar, data, new_event_id(call)), calendar, call)


# -- patch and update


@api.method("calendar.events.patch")
def patch_event(call: Call) -> dict[str, Any]:
    return _change(call, whole=False)


@api.method("calendar.events.update")
def update_event(call: Call) -> dict[str, Any]:
    return _change(call, whole=True)


def _change(call: Call, whole: bool) -> dict[str, Any]:
    calendar = calendar_of(call, "writer")
    old = event_of(call, calendar)
    check_match(call, etag(old.version))
    sequence = call.body.get("sequence")
    if sequence is not None and sequence < old.sequence:
        raise ApiError(
            400,
            "Invalid sequence value. The specified sequence number is below the current sequence number of the "
            "resource. Re-fetch the resource and use its sequence number on the following request.",
            "invalid",
        )
    data = _replaced(call, old) if whole else merged(call, old.data)
    data = checked(call, data, calendar)
    for name in ("creator", "organizer"):
        data[name] = old.data.get(name) or _organizer(call, calendar)
    event = replace(old, data=data, status=_status(call, "confirmed" if whole else old.status))
    event = replace(event, sequence=max(sequence or 0, old.sequence + _moved(old, event)))
    return event_json(_apply(call, calendar, old, event), calendar, call)


def _replaced(call: Call, old: CalendarEvent) -> dict[str, Any]:
    """Update: what is not sent is gone, but what this call cannot see stays."""
    data = new_data(call)
    for name, seen in (
        ("attachments", call.get("supportsAttachments")),
        ("conferenceData", call.get("conferenceDataVersion")),
    ):
        if not seen and name in old.data:
            data[name] = old.data[name]
    return data


def _moved(old: CalendarEvent, new: CalendarEvent) -> int:
    return int(any(old.data.get(name) != new.data.get(name) for name in ("start", "end", "recurrence")))


def _apply(call: Call, calendar: Calendar, old: CalendarEvent, event: CalendarEvent) -> CalendarEvent:
    if not event.own_copy and not old.data.get("guestsCanModify"):
        return _as_guest(call, calendar, old, event)
    event = save(call.store, event, calendar.time_zone)
    if event.own_copy:
        _settle_instances(call, old, event, calendar.time_zone)
        share(call.store, event, calendar.time_zone)
    return event


def _as_guest(call: Call, calendar: Calendar, old: CalendarEvent, event: CalendarEvent) -> CalendarEvent:
    """A guest answers for themselves and keeps their own reminders; the rest is the organizer's."""
    changed = [name for name in SHARED if old.data.get(name) != event.data.get(name)]
    mine = _guest(event, calendar.id)
    others = [{**one, "email": ""} if one["email"] == calendar.id else one for one in event.data.get("attendees", [])]
    before = [{**one, "email": ""} if one["email"] == calendar.id else one for one in old.data.get("attendees", [])]
    same = {one["email"] for one in others} == {one["email"] for one in before}
    if changed or not same:
        raise ApiError(
            403,
            "Shared properties can only be changed by the organizer of the event.",
            "forbiddenForNonOrganizer",
            domain="calendar",
        )
    event = save(call.store, event, calendar.time_zone)
    _answer_organizer(call, event, mine, calendar)
    return stored(call.store, calendar.id, event.id) or event


def _guest(event: CalendarEvent, email: str) -> dict[str, Any] | None:
    return next((one for one in event.data.get("attendees", []) if one["email"] == email), None)


def _answer_organizer(call: Call, event: CalendarEvent, mine: dict[str, Any] | None, calendar: Calendar) -> None:
    from benchflow_service_claw_gcal.book import find

    zone = calendar.time_zone
    theirs = find(call.store, event.organizer, event.id, zone)
    if theirs is None or mine is None:
        return
    attendees = [mine if one["email"] == calendar.id else one for one in theirs.data.get("attendees", [])]
    theirs = save(call.store, replace(theirs, data={**theirs.data, "attendees": attendees}), zone)
    share(call.store, theirs, zone)


def _settle_instances(call: Call, old: CalendarEvent, event: CalendarEvent, zone: str) -> None:
    """After a series changed: instances that are no longer part of it go, and all do when it was moved."""
    if not old.recurrence:
        return
    if event.status == "cancelled":
        for one in exceptions(call.store, event):
            save(call.store, replace(one, status="cancelled"), zone)
        return
    if old.data["start"] == event.data["start"] and old.recurrence == event.recurrence:
        return
    kept = set()
    if event.recurrence and old.data["start"] == event.data["start"]:
        start, _ = event.times(zone)
        last = max([one.times(zone)[0] for one in exceptions(call.store, old)], default=start)
        kept = {
            f"{event.id}_{instance_key(at, event.all_day)}"
            for at in occurrences(event.recurrence, start, last, event.all_day)
        }
    for one in exceptions(call.store, old):
        if one.id not in kept:
            call.store.delete("events", calendar_id=one.calendar_id, id=one.id)


# -- delete and move


@api.method("calendar.events.delete")
def delete_event(call: Call) -> None:
    calendar = calendar_of(call, "writer")
    old = event_of(call, calendar)
    check_match(call, etag(old.version))
    if old.status == "cancelled":
        raise ApiError(410, "Resource has been deleted", "deleted")
    event = save(call.store, replace(old, status="cancelled", sequence=old.sequence + 1), calendar.time_zone)
    if event.own_copy:
        _settle_instances(call, old, event, calendar.time_zone)
        share(call.store, event, calendar.time_zone)
        return
    mine = _guest(event, calendar.id)
    if mine:
        _decline(call, event, {**mine, "responseStatus": "declined"}, calendar)


def _decline(call: Call, event: CalendarEvent, mine: dict[str, Any], calendar: Calendar) -> None:
    """Deleting an invitation is a no to the organizer; the copy stays deleted."""
    _answer_organizer(call, event, mine, calendar)
    copy = stored(call.store, calendar.id, event.id)
    if copy and copy.status != "cancelled":
        save(call.store, replace(copy, status="cancelled"), calendar.time_zone)


@api.method("calendar.events.move")
def move_event(call: Call) -> dict[str, Any]:
    calendar = calendar_of(call, "writer")
    event = event_of(call, calendar)
    target = find_calendar(call.store, call.get("destination"), calendar.user)
    if target is None:
        raise not_found("Not Found")
    need(target, "writer")
    if event.recurring_event_id:
        raise ApiError(
            400, "Cannot change the organizer of an instance.", "cannotChangeOrganizerOfInstance", domain="calendar"
        )
    if not event.own_copy or event.status == "cancelled":
        raise ApiError(403, "Cannot move an event of another organizer.", "cannotChangeOrganizer", domain="calendar")
    if target.id == calendar.id:
        return event_json(event, calendar, call)
    parts = [event, *exceptions(call.store, event)]
    for one in parts:
        data = {**one.data, "organizer": _organizer(call, target)}
        moved = save(call.store, replace(one, calendar_id=target.id, organizer=target.id, data=data), target.time_zone)
        save(call.store, replace(one, status="cancelled"), calendar.time_zone)
        for row in call.store.all(
            "SELECT calendar_id FROM events WHERE id = ? AND organizer = ? AND calendar_id != ?",
            one.id,
            calendar.id,
            calendar.id,
        ):
            call.store.update("events", {"calendar_id": row["calendar_id"], "id": one.id}, organizer=target.id)
        share(call.store, moved, target.time_zone)
    made = stored(call.store, target.id, event.id)
    assert made is not None
    return event_json(made, target, call)
