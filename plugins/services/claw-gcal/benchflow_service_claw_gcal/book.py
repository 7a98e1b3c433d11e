"""Events in their calendars: found, written, expanded, copied to those invited."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from benchflow_claw_kit import Row, Store

from benchflow_service_claw_gcal.access import next_version
from benchflow_service_claw_gcal.recurrence import instance_key, key_moment, occurrences
from benchflow_service_claw_gcal.times import iso, moment, ms

__all__ = ["CalendarEvent", "expand", "find", "save", "share"]

HORIZON = timedelta(days=730)
PRIVATE = ("reminders", "colorId", "transparency", "visibility", "extendedProperties")
"""What each attendee has for themselves; of extendedProperties only the private part."""


@dataclass(frozen=True)
class CalendarEvent:
    calendar_id: str
    id: str
    data: dict[str, Any]
    status: str = "confirmed"
    ical_uid: str = ""
    organizer: str = ""
    recurring_event_id: str | None = None
    original_start: dict[str, Any] | None = None
    sequence: int = 0
    created_ms: int = 0
    updated_ms: int = 0
    version: int = 0
    virtual: bool = False
    """An instance that is nowhere stored: its series says what it is."""

    @property
    def all_day(self) -> bool:
        return bool(self.data["start"].get("date"))

    @property
    def recurrence(self) -> list[str]:
        lines: list[str] = self.data.get("recurrence") or []
        return lines

    @property
    def own_copy(self) -> bool:
        """Is this the organizer's?"""
        return self.organizer == self.calendar_id

    def times(self, zone: str) -> tuple[datetime, datetime]:
        start, end = moment(self.data["start"], zone), moment(self.data["end"], zone, "end")
        if self.all_day and end <= start:
            end = start + timedelta(days=1)
        return start, end


def from_row(row: Row) -> CalendarEvent:
    names = ("calendar_id", "id", "status", "ical_uid", "organizer", "recurring_event_id", "sequence", "created_ms")
    fields = {name: row[name] for name in (*names, "updated_ms", "version")}
    original = json.loads(row["original_start"]) if row["original_start"] else None
    return CalendarEvent(data=json.loads(row["data"]), original_start=original, **fields)


def stored(store: Store, calendar: str, id: str) -> CalendarEvent | None:
    row = store.one("SELECT * FROM events WHERE calendar_id = ? AND id = ?", calendar, id)
    return from_row(row) if row else None


def find(store: Store, calendar: str, id: str, zone: str) -> CalendarEvent | None:
    """An event by id; an instance of a series also when nobody has touched it yet."""
    event = stored(store, calendar, id)
    if event or "_" not in id:
        return event
    master_id, _, key = id.rpartition("_")
    master = stored(store, calendar, master_id)
    if master is None or not master.recurrence or master.status == "cancelled":
        return None
    start, _ = master.times(zone)
    at = key_moment(key, start.tzinfo)
    if at is None:
        return None
    for one in occurrences(master.recurrence, start, at, master.all_day, at - timedelta(days=2)):
        if instance_key(one, master.all_day) == key:
            return instance(master, one, zone)
    return None


def instance(master: CalendarEvent, at: datetime, zone: str) -> CalendarEvent:
    start, end = master.times(zone)
    if master.all_day:
        days = (end.date() - start.date()).days
        begin: dict[str, Any] = {"date": at.date().isoformat()}
        finish: dict[str, Any] = {"date": (at.date() + timedelta(days=days)).isoformat()}
    else:
        name = master.data["start"].get("timeZone") or zone
        until = (at.astimezone(UTC) + (end.astimezone(UTC) - start.astimezone(UTC))).astimezone(at.tzinfo)
        begin = {"dateTime": iso(at), "timeZone": name}
        finish = {"dateTime": iso(until), "timeZone": master.data["end"].get("timeZone") or name}
    data = {name: value for name, value in master.data.items() if name != "recurrence"}
    return replace(
        master,
        id=f"{master.id}_{instance_key(at, master.all_day)}",
        data={**data, "start": begin, "end": finish},
        recurring_event_id=master.id,
        original_start=begin,
        virtual=True,
    )


def exceptions(store: Store, master: CalendarEvent) -> list[CalendarEvent]:
    rows = store.all(
        "SELECT * FROM events WHERE calendar_id = ? AND recurring_event_id = ?", master.calendar_id, master.id
    )
    return [from_row(row) for row in rows]


def expand(
    store: Store, master: CalendarEvent, zone: str, low: int | None, high: int | None, deleted: bool
) -> Iterator[CalendarEvent]:
    """The instances of a series that touch [low, high), changed ones as they are now."""
    changed = exceptions(store, master)
    touched = {event.id for event in changed}
    start, end = master.times(zone)
    length = ms(end) - ms(start)
    if high is None:
        until = datetime.fromtimestamp(max(store.now_ms(), low or 0, ms(start)) / 1000, UTC) + HORIZON
    else:
        until = datetime.fromtimestamp(min(high, 253_000_000_000_000) / 1000, UTC)
    floor = None if low is None else datetime.fromtimestamp((low - length) / 1000, UTC) - timedelta(days=2)
    for at in occurrences(master.recurrence, start, until, master.all_day, floor):
        if low is not None and ms(at) + length <= low:
            continue
        if high is not None and ms(at) >= high:
            break
        one = instance(master, at, zone)
        if one.id not in touched:
            yield one
    for event in changed:
        if (deleted or event.status != "cancelled") and in_range(event, zone, low, high):
            yield event


def in_range(event: CalendarEvent, zone: str, low: int | None, high: int | None) -> bool:
    start, end = event.times(zone)
    return (low is None or ms(end) > low) and (high is None or ms(start) < high)


# -- writing


def save(store: Store, event: CalendarEvent, zone: str) -> CalendarEvent:
    """Written as a new version; `created` stays."""
    now = store.now_ms()
    event = replace(
        event, version=next_version(store), updated_ms=now, created_ms=event.created_ms or now, virtual=False
    )
    start, end = event.times(zone)
    store.insert(
        "events",
        replace=True,
        calendar_id=event.calendar_id,
        id=event.id,
        status=event.status,
        summary=event.data.get("summary") or "",
        start_ms=ms(start),
        end_ms=ms(end),
        recurring_event_id=event.recurring_event_id,
        original_start=event.original_start,
        ical_uid=event.ical_uid,
        organizer=event.organizer,
        sequence=event.sequence,
        created_ms=event.created_ms,
        updated_ms=event.updated_ms,
        version=event.version,
        data=event.data,
    )
    return event


def share(store: Store, event: CalendarEvent, zone: str) -> None:
    """The organizer's event as every invited user of this world has it; who is no longer invited loses it."""
    invited = {one["email"].lower() for one in event.data.get("attendees") or []} - {event.calendar_id}
    rows = store.all(
        "SELECT calendar_id FROM events WHERE id = ? AND organizer = ? AND calendar_id != ?",
        event.id,
        event.organizer,
        event.calendar_id,
    )
    have = {row["calendar_id"] for row in rows}
    local = {email for email in invited if store.one("SELECT email FROM users WHERE email = ?", email)}
    for user in sorted(have | local):
        old = stored(store, user, event.id)
        if old and old.organizer != event.organizer:
            continue
        status = event.status if user in local else "cancelled"
        save(store, _copy(event, user, old, status), zone)


def _copy(event: CalendarEvent, user: str, old: CalendarEvent | None, status: str) -> CalendarEvent:
    data = {name: value for name, value in event.data.items() if name not in ("reminders", "colorId")}
    shared = (event.data.get("extendedProperties") or {}).get("shared")
    data.pop("extendedProperties", None)
    own = {name: value for name, value in (old.data if old else {}).items() if name in PRIVATE}
    private = (own.pop("extendedProperties", None) or {}).get("private")
    properties = {"shared": shared, "private": private}
    if shared or private:
        data["extendedProperties"] = {name: value for name, value in properties.items() if value}
    created = old.created_ms if old else 0
    return replace(event, calendar_id=user, data={**data, **own}, status=status, created_ms=created)


def html_link(event: CalendarEvent) -> str:
    text = f"{event.id} {event.calendar_id}".encode()
    return "https://www.google.com/calendar/event?eid=" + base64.urlsafe_b64encode(text).decode().rstrip("=")
