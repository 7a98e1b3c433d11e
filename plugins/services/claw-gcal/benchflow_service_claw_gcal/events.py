"""Reading events: get, list, instances."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchflow_claw_kit import ApiError, BadToken, Call, not_found, read_token, write_token

from benchflow_service_claw_gcal.access import Calendar, calendar_of, etag
from benchflow_service_claw_gcal.book import CalendarEvent, expand, find, from_row, html_link, in_range
from benchflow_service_claw_gcal.contract import api
from benchflow_service_claw_gcal.syncing import bad_page_token, current_version, gone, page_size, read_sync, write_sync
from benchflow_service_claw_gcal.times import iso_ms, moment, ms, parse_query_time, shown, zone

NOT_WITH_SYNC = (
    *("iCalUID", "orderBy", "privateExtendedProperty", "q", "sharedExtendedProperty", "timeMin", "timeMax"),
    "updatedMin",
)


# -- one event


def event_json(event: CalendarEvent, calendar: Calendar, call: Call) -> dict[str, Any]:
    asked = call.get("timeZone")
    head: dict[str, Any] = {
        "kind": "calendar#event",
        "etag": etag(event.version),
        "id": event.id,
        "status": event.status,
    }
    if event.original_start:
        series = {
            "recurringEventId": event.recurring_event_id,
            "originalStartTime": shown(event.original_start, calendar.time_zone, asked),
        }
        if event.status == "cancelled":
            return {**head, **series}
        head |= series
    data = event.data
    if _hidden(event, calendar):
        keep = ("start", "end", "recurrence", "transparency", "visibility", "eventType")
        data = {name: data[name] for name in keep if name in data}
        data["visibility"] = data.get("visibility", "private")
    value = {
        **head,
        "htmlLink": html_link(event),
        "created": iso_ms(event.created_ms),
        "updated": iso_ms(event.updated_ms),
        **{name: item for name, item in data.items() if name not in ("start", "end")},
        "start": shown(data["start"], calendar.time_zone, asked),
        "end": shown(data["end"], calendar.time_zone, asked),
        "iCalUID": event.ical_uid,
        "sequence": event.sequence,
    }
    return _personal(value, data, event, calendar, call)


def _hidden(event: CalendarEvent, calendar: Calendar) -> bool:
    if calendar.role == "freeBusyReader":
        return True
    return calendar.role == "reader" and event.data.get("visibility") in ("private", "confidential")


def _personal(
    value: dict[str, Any], data: dict[str, Any], event: CalendarEvent, calendar: Calendar, call: Call
) -> dict[str, Any]:
    for name in ("creator", "organizer"):
        if name in data:
            value[name] = {**data[name], **({"self": True} if data[name].get("email") == calendar.id else {})}
    if data.get("attendees"):
        value["attendees"] = [_attendee(one, event, calendar) for one in data["attendees"]]
        most = call.get("maxAttendees")
        if most and len(value["attendees"]) > most:
            mine = [one for one in value["attendees"] if one.get("self")]
            value["attendees"], value["attendeesOmitted"] = mine[:most], True
    entry = [
        one for one in (data.get("conferenceData") or {}).get("entryPoints", []) if one.get("entryPointType") == "video"
    ]
    if entry:
        value["hangoutLink"] = entry[0]["uri"]
    if not _hidden(event, calendar):
        value.setdefault("reminders", {"useDefault": True})
    value.setdefault("eventType", "default")
    return value


def _attendee(one: dict[str, Any], event: CalendarEvent, calendar: Calendar) -> dict[str, Any]:
    extra = {"organizer": True} if one["email"] == event.organizer else {}
    return {**one, **extra, **({"self": True} if one["email"] == calendar.id else {})}


def event_of(call: Call, calendar: Calendar) -> CalendarEvent:
    event = find(call.store, calendar.id, call["eventId"], calendar.time_zone)
    if event is None:
        raise not_found("Not Found")
    return event


@api.method("calendar.events.get")
def get_event(call: Call) -> dict[str, Any]:
    calendar = calendar_of(call, "freeBusyReader")
    _check_zone(call)
    return event_json(event_of(call, calendar), calendar, call)


def _check_zone(call: Call) -> None:
    if call.get("timeZone"):
        zone(call.get("timeZone"), "timeZone")


# -- lists


@api.method("calendar.events.list")
def list_events(call: Call) -> dict[str, Any]:
    calendar = calendar_of(call, "freeBusyReader")
    _check_zone(call)
    single = call.get("singleEvents", False)
    if call.get("orderBy") == "startTime" and not single:
        raise ApiError(400, "The requested ordering is not available for the particular query.", "badRequest")
    low, high = time_range(call)
    sync = read_sync(call, f"events:{calendar.id}")
    if sync:
        for name in NOT_WITH_SYNC:
            if name in call.query:
                raise ApiError(400, f"{name} cannot be combined with a sync token.", "badRequest", location=name)
        if sync["version"] < calendar.sync_floor:
            raise gone()
    since = sync["version"] if sync else 0
    rows = call.store.all(
        "SELECT * FROM events WHERE calendar_id = ? AND version > ? ORDER BY created_ms, id", calendar.id, since
    )
    deleted = bool(call.get("showDeleted") or sync or call.get("updatedMin"))
    found = _chosen(call, calendar, [from_row(row) for row in rows], single, (low, high), deleted)
    return answer(call, calendar, [event for event in found if _matches(event, call)], syncable=_syncable(call))


def time_range(call: Call) -> tuple[int | None, int | None]:
    low, high = parse_query_time("timeMin", call.get("timeMin")), parse_query_time("timeMax", call.get("timeMax"))
    if low is not None and high is not None and high <= low:
        raise ApiError(
            400, "The specified time range is empty.", "timeRangeEmpty", domain="calendar", location="timeMax"
        )
    return low, high


def _chosen(
    call: Call,
    calendar: Calendar,
    events: list[CalendarEvent],
    single: bool,
    span: tuple[int | None, int | None],
    deleted: bool,
) -> Iterable[CalendarEvent]:
    masters = {event.id for event in events if event.recurrence}
    for event in events:
        if event.recurrence and event.status != "cancelled":
            instances = expand(call.store, event, calendar.time_zone, *span, deleted)
            if single:
                yield from instances
            elif span == (None, None) or next(iter(instances), None) is not None:
                yield event
        elif _alone(event, masters, single, deleted) and in_range(event, calendar.time_zone, *span):
            yield event


def _alone(event: CalendarEvent, masters: set[str], single: bool, deleted: bool) -> bool:
    """Is this stored event listed by itself? Not when its series lists it, and deleted ones only when asked for."""
    if single and (event.recurrence or event.recurring_event_id in masters):
        return False
    if event.status != "cancelled" or deleted:
        return True
    return bool(event.recurring_event_id) and not single


def _matches(event: CalendarEvent, call: Call) -> bool:
    """The filters that look at one event alone."""
    if call.get("iCalUID") and event.ical_uid != call.get("iCalUID"):
        return False
    if call.get("eventTypes") and event.data.get("eventType", "default") not in call.get("eventTypes"):
        return False
    least = parse_query_time("updatedMin", call.get("updatedMin"))
    if least is not None and event.updated_ms < least:
        return False
    for kind in ("private", "shared"):
        have = (event.data.get("extendedProperties") or {}).get(kind, {})
        for text in call.get(f"{kind}ExtendedProperty", []):
            name, mark, value = text.partition("=")
            if not mark:
                raise ApiError(
                    400, "Invalid extended property constraint.", "invalid", location=f"{kind}ExtendedProperty"
                )
            if have.get(name) != value:
                return False
    return not call.get("q") or _found(event, call.get("q"))


def _found(event: CalendarEvent, text: str) -> bool:
    """Every word, anywhere a person would look."""
    data = event.data
    people = [*(data.get("attendees") or []), data.get("organizer") or {}, data.get("creator") or {}]
    pieces = [str(data.get(name) or "") for name in ("summary", "description", "location")]
    pieces += [f"{one.get('displayName', '')} {one.get('email', '')}" for one in people]
    place = data.get("workingLocationProperties") or {}
    pieces += [str(value.get("label", "")) for value in place.values() if isinstance(value, dict)]
    everything = " ".join(pieces).lower()
    return all(word in everything for word in text.lower().replace('"', " ").split())


def _syncable(call: Call) -> bool:
    return not any(name in call.query for name in NOT_WITH_SYNC if name not in ("timeMin", "timeMax"))


def _key(event: CalendarEvent, order: str | None, zone_name: str) -> list[Any]:
    if order == "startTime":
        return [ms(event.times(zone_name)[0]), event.id]
    return [event.updated_ms if order == "updated" else event.created_ms, event.id]


def answer(
    call: Call, calendar: Calendar, found: list[CalendarEvent], syncable: bool, order: str | None = None
) -> dict[str, Any]:
    """A page of events in the list's envelope."""
    order = order or call.get("orderBy")
    keyed = sorted(((_key(event, order, calendar.time_zone), event) for event in found), key=lambda one: one[0])
    question: list[Any] = [
        calendar.id,
        {name: value for name, value in call.query.items() if name not in ("pageToken", "maxResults")},
    ]
    question.append(call.path.get("eventId"))
    version = current_version(call)
    if call.get("pageToken"):
        try:
            place = read_token(call.store.secret, call.get("pageToken"), question)
        except (BadToken, ValueError):
            raise bad_page_token() from None
        keyed, version = [one for one in keyed if one[0] > place["after"]], place["version"]
    size = page_size(call, 250, 2500)
    value = _envelope(call, calendar, [event for _, event in keyed[:size]])
    if len(keyed) > size:
        value["nextPageToken"] = write_token(
            call.store.secret, {"after": keyed[size - 1][0], "version": version}, question
        )
    elif syncable:
        value["nextSyncToken"] = write_sync(call, f"events:{calendar.id}", {"version": version})
    return value


def _envelope(call: Call, calendar: Calendar, events: list[CalendarEvent]) -> dict[str, Any]:
    import json

    row = call.store.one(
        "SELECT data FROM calendar_list WHERE user = ? AND calendar_id = ?", calendar.user, calendar.id
    )
    newest = call.store.one(
        "SELECT max(updated_ms) AS updated, max(version) AS version FROM events WHERE calendar_id = ?", calendar.id
    )
    assert newest is not None
    return {
        "kind": "calendar#events",
        "etag": etag(newest["version"] or calendar.version),
        "summary": calendar.summary,
        "description": calendar.data.get("description", ""),
        "updated": iso_ms(newest["updated"] or call.store.now_ms()),
        "timeZone": call.get("timeZone") or calendar.time_zone,
        "accessRole": calendar.role,
        "defaultReminders": json.loads(row["data"]).get("defaultReminders", []) if row else [],
        "items": [event_json(event, calendar, call) for event in events],
    }


@api.method("calendar.events.instances")
def list_instances(call: Call) -> dict[str, Any]:
    calendar = calendar_of(call, "freeBusyReader")
    _check_zone(call)
    event = event_of(call, calendar)
    low, high = time_range(call)
    found: list[CalendarEvent] = []
    if event.recurrence and event.status != "cancelled":
        found = list(expand(call.store, event, calendar.time_zone, low, high, bool(call.get("showDeleted"))))
    if call.get("originalStart"):
        wanted = {"date" if len(call.get("originalStart")) == 10 else "dateTime": call.get("originalStart")}
        at = ms(moment({**wanted, "timeZone": calendar.time_zone}, calendar.time_zone))
        found = [
            one for one in found if one.original_start and ms(moment(one.original_start, calendar.time_zone)) == at
        ]
    return answer(call, calendar, found, syncable=False, order="startTime")
