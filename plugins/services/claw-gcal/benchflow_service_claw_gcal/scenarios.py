"""Worlds: a task's own scenario file, and the built-in ones, which are made of the same shape."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from benchflow_claw_kit import ApiError, Store
from benchflow_claw_kit.shape import listed, only, when_ms
from benchflow_claw_kit.worlds import read_world, scenarios

from benchflow_service_claw_gcal.access import create_calendar, create_user, find_calendar, grant, next_version
from benchflow_service_claw_gcal.book import CalendarEvent, save, share
from benchflow_service_claw_gcal.recurrence import check_recurrence
from benchflow_service_claw_gcal.times import from_ms, iso, moment, zone

__all__ = ["SCENARIOS", "load"]

_WORLDS = Path(__file__).with_name("worlds")
_WORDS = read_world(_WORLDS / "words.json")
_USER = ("email", "name", "timeZone", "settings")
_CALENDAR = ("id", "owner", "summary", "description", "location", "timeZone", "share", "colorId")
_EVENT = (
    *("calendar", "id", "summary", "description", "location", "start", "end", "recurrence", "attendees", "status"),
    *("creator", "organizer", "iCalUID", "colorId", "transparency", "visibility", "reminders", "extendedProperties"),
    *("eventType", "guestsCanModify", "guestsCanInviteOthers", "conferenceData", "attachments", "duration"),
)


def load(store: Store, data: Mapping[str, Any]) -> None:
    """`{"now", "users": [...], "calendars": [...], "events": [...]}`; README.md describes each."""
    only(data, "scenario", ("now", "users", "calendars", "events", "description"))
    users = listed(data.get("users", []), "users") or [{"email": "alex@example.com", "name": "Alex Morgan"}]
    for number, user in enumerate(users):
        user = only(user, f"users[{number}]", _USER, ("email",))
        name = str(user.get("timeZone", "UTC"))
        zone(name)
        create_user(store, str(user["email"]), str(user.get("name", "")), name, dict(user.get("settings", {})))
    first = str(users[0]["email"]).lower()
    for number, calendar in enumerate(listed(data.get("calendars", []), "calendars")):
        _calendar(store, only(calendar, f"calendars[{number}]", _CALENDAR, ("summary",)), first)
    for number, event in enumerate(listed(data.get("events", []), "events")):
        where = f"events[{number}]"
        _event(store, only(event, where, _EVENT, ("start",)), where, first)


def _calendar(store: Store, given: Mapping[str, Any], first: str) -> None:
    owner = str(given.get("owner", first)).lower()
    id = str(given.get("id") or f"c_{store.new_id('calendar', 52)}@group.calendar.google.com")
    zone_name = str(given.get("timeZone") or store.value("SELECT time_zone FROM calendars WHERE id = ?", owner))
    zone(zone_name)
    fields = {name: given[name] for name in ("summary", "description", "location") if name in given}
    entry = {"colorId": str(given["colorId"])} if "colorId" in given else {}
    create_calendar(store, id, owner, {**fields, "timeZone": zone_name}, entry)
    for who, role in given.get("share", {}).items():
        kind = "default" if who == "default" else "user" if "@" in who else "domain"
        grant(store, id, str(role), kind, "" if kind == "default" else who.lower())
        if kind == "user" and store.one("SELECT email FROM users WHERE email = ?", who.lower()):
            shared = {"colorId": "20", "selected": True}
            store.insert(
                "calendar_list", user=who.lower(), calendar_id=id, data=shared, deleted=0, version=next_version(store)
            )


def _event(store: Store, given: Mapping[str, Any], where: str, first: str) -> None:
    name = str(given.get("calendar", first))
    row = store.one("SELECT id, owner FROM calendars WHERE id = ? OR summary = ?", name.lower(), name)
    if row is None:
        raise ValueError(f"{where}: no calendar {name!r}: name one by its id or its summary")
    calendar = find_calendar(store, row["id"], row["owner"])
    assert calendar is not None
    start = _time(given["start"], store.now_ms(), calendar.time_zone, where)
    end = _end(given, start, store.now_ms(), calendar.time_zone, where)
    data = {name: given[name] for name in _EVENT[2:] if name in given}
    for extra in ("start", "end", "status", "creator", "organizer", "iCalUID", "duration", "calendar", "id"):
        data.pop(extra, None)
    data |= {"start": start, "end": end}
    data["attendees"] = [_attendee(one, where) for one in given.get("attendees", [])]
    if not data["attendees"]:
        del data["attendees"]
    id = str(given.get("id") or store.new_id("event", 26, "0123456789abcdefghijklmnopqrstuv"))
    if not re.fullmatch(r"[a-v0-9]{5,1024}", id):
        raise ValueError(f"{where}: id {id!r} may only have the characters a-v and 0-9, five at least")
    organizer = str(given.get("organizer", calendar.id)).lower()
    data["organizer"] = {"email": organizer}
    data["creator"] = {
        "email": str(given.get("creator", organizer if "organizer" in given else calendar.owner)).lower()
    }
    event = CalendarEvent(
        calendar.id,
        id,
        data,
        str(given.get("status", "confirmed")),
        str(given.get("iCalUID") or f"{id}@google.com"),
        organizer,
    )
    try:
        if event.recurrence:
            check_recurrence(event.recurrence, moment(start, calendar.time_zone), event.all_day)
        event = save(store, event, calendar.time_zone)
    except ApiError as error:
        raise ValueError(f"{where}: {error}") from None
    if event.own_copy:
        share(store, event, calendar.time_zone)


def _attendee(given: Any, where: str) -> dict[str, Any]:
    value = {"email": given} if isinstance(given, str) else dict(given)
    if "@" not in str(value.get("email", "")):
        raise ValueError(f"{where}: an attendee has an email")
    return {"responseStatus": "needsAction", **value, "email": str(value["email"]).lower()}


def _time(value: Any, now_ms: int, zone_name: str, where: str) -> dict[str, Any]:
    """An EventDateTime as the API has it, or for short a date, a local time, an instant, or `+2d`."""
    if isinstance(value, Mapping):
        return dict(value)
    text = str(value)
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return {"date": text}
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}T[\d:]+", text):
        return {"dateTime": text if text.count(":") == 2 else text + ":00", "timeZone": zone_name}
    at = from_ms(when_ms(text, now_ms, where), zone_name)
    return {"dateTime": iso(at), "timeZone": zone_name}


def _end(given: Mapping[str, Any], start: dict[str, Any], now_ms: int, zone_name: str, where: str) -> dict[str, Any]:
    if "end" in given:
        return _time(given["end"], now_ms, zone_name, where)
    try:
        at = moment(start, zone_name)
    except ApiError as error:
        raise ValueError(f"{where}: {error}") from None
    if start.get("date"):
        return {"date": (at.date() + timedelta(days=1)).isoformat()}
    return {
        "dateTime": iso(at + timedelta(minutes=int(given.get("duration", 60)))),
        "timeZone": start.get("timeZone", zone_name),
    }


def empty(random: Random) -> dict[str, Any]:
    """One user with an empty calendar."""
    return {}


def office(random: Random) -> dict[str, Any]:
    """A product lead's weeks: recurring meetings, invitations open and answered, travel, a team calendar."""
    made: list[dict[str, Any]] = []
    for day in range(20):
        for _ in range(random.randint(0, 2)):
            summary, place, minutes = random.choice(_WORDS["appointments"])
            guests = random.sample(_WORDS["guests"], random.randint(0, 2)) if summary != "Dentist" else []
            answers = [
                {"email": who, "responseStatus": random.choice(("accepted", "needsAction", "declined"))}
                for who in guests
            ]
            hour = random.choice((10, 11, 13, 15, 16))
            made.append(
                {
                    "summary": summary,
                    "location": place,
                    "start": _at(day, hour, random.choice((0, 30))),
                    "duration": minutes,
                    "attendees": answers,
                    "visibility": "private" if summary == "Dentist" else "default",
                }
            )
    world: dict[str, Any] = read_world(_WORLDS / "office.json")
    return {**world, "events": [*world["events"][:-1], *made, world["events"][-1]]}


def clinic(random: Random) -> dict[str, Any]:
    """A small practice: three doctors, rooms, appointments, holidays, overlapping bookings."""
    made: list[dict[str, Any]] = []
    for day in (0, 1, 2, 3, 4, 7, 8, 9, 10, 11):
        for doctor in _WORDS["doctors"]:
            for slot in random.sample(range(16), 6):
                patient, kind = random.choice(_WORDS["patients"]), random.choice(_WORDS["visits"])
                case = {"patient": patient.lower(), "case": str(random.randint(1000, 9999))}
                made.append(
                    {
                        "calendar": doctor,
                        "summary": f"{kind}: {patient}",
                        "start": _at(day, 8 + slot // 2, 30 * (slot % 2)),
                        "duration": 30,
                        "extendedProperties": {"private": case},
                    }
                )
    world: dict[str, Any] = read_world(_WORLDS / "clinic.json")
    return {**world, "events": [*made, *world["events"]]}


def _at(day: int, hour: int, minute: int) -> str:
    """Return a local time `day` days after Monday, 2 March 2026."""
    return (datetime(2026, 3, 2, hour, minute) + timedelta(days=day)).isoformat()


SCENARIOS = scenarios(load, empty, office, clinic)
