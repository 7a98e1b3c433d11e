"""colors, settings, freebusy and the channels of watch calls."""

from __future__ import annotations

import json
from typing import Any

from benchflow_claw_kit import ApiError, Call, not_found, required

from benchflow_service_claw_gcal.access import calendar_of, find_calendar, user_of
from benchflow_service_claw_gcal.book import CalendarEvent, expand, from_row, in_range
from benchflow_service_claw_gcal.colors import CALENDAR_COLORS, EVENT_COLORS
from benchflow_service_claw_gcal.contract import api
from benchflow_service_claw_gcal.syncing import page_of
from benchflow_service_claw_gcal.times import from_ms, instant, iso, ms, zone

MAX_CALENDARS = 50
WEEK_MS = 7 * 24 * 3600 * 1000


@api.method("calendar.colors.get")
def get_colors(call: Call) -> dict[str, Any]:
    return {
        "kind": "calendar#colors",
        "updated": "2012-02-14T00:00:00.000Z",
        "calendar": CALENDAR_COLORS,
        "event": EVENT_COLORS,
    }


# -- settings


def _settings(call: Call) -> dict[str, str]:
    row = call.store.one("SELECT settings FROM users WHERE email = ?", user_of(call))
    assert row is not None
    value: dict[str, str] = json.loads(row["settings"])
    return value


def _setting(name: str, value: str) -> dict[str, Any]:
    return {"kind": "calendar#setting", "etag": '"0"', "id": name, "value": value}


@api.method("calendar.settings.list")
def list_settings(call: Call) -> dict[str, Any]:
    names = [
        {"rowid": i, "version": 1, "id": name, "value": v}
        for i, (name, v) in enumerate(sorted(_settings(call).items()), 1)
    ]
    rows, beside = page_of(call, f"settings:{user_of(call)}", names, lambda row, syncing: True, 100, 250)
    return {"kind": "calendar#settings", **beside, "items": [_setting(row["id"], row["value"]) for row in rows]}


@api.method("calendar.settings.get")
def get_setting(call: Call) -> dict[str, Any]:
    settings = _settings(call)
    if call["setting"] not in settings:
        raise not_found("Not Found")
    return _setting(call["setting"], settings[call["setting"]])


# -- free and busy


@api.method("calendar.freebusy.query", writes=False)
def query_freebusy(call: Call) -> dict[str, Any]:
    user = user_of(call)
    low, high = _bound(call, "timeMin"), _bound(call, "timeMax")
    if high <= low:
        raise ApiError(400, "The specified time range is empty.", "timeRangeEmpty", domain="calendar")
    name = call.body.get("timeZone") or "UTC"
    zone(name)
    items = [str(item.get("id")) for item in call.body.get("items") or [] if item.get("id")]
    most = min(call.body.get("calendarExpansionMax") or MAX_CALENDARS, MAX_CALENDARS)
    calendars: dict[str, Any] = {}
    for number, id in enumerate(items):
        if number >= most:
            calendars[id] = {"errors": [{"domain": "calendar", "reason": "tooManyCalendarsRequested"}], "busy": []}
        else:
            calendars[id] = _busy(call, id, user, low, high, name)
    return {
        "kind": "calendar#freeBusy",
        "timeMin": iso(from_ms(low)).replace("Z", ".000Z"),
        "timeMax": iso(from_ms(high)).replace("Z", ".000Z"),
        "calendars": calendars,
    }


def _bound(call: Call, name: str) -> int:
    text = call.body.get(name)
    if not text:
        raise ApiError(400, f"Missing {name}.", "required", location=name)
    at = instant(text)
    if at is None or at.tzinfo is None:
        raise ApiError(400, "Bad Request", "badRequest")
    return ms(at)


def _busy(call: Call, id: str, user: str, low: int, high: int, zone_name: str) -> dict[str, Any]:
    calendar = find_calendar(call.store, id, user)
    if calendar is None:
        return {"errors": [{"domain": "global", "reason": "notFound"}], "busy": []}
    spans: list[tuple[int, int]] = []
    for row in call.store.all("SELECT * FROM events WHERE calendar_id = ? AND status != 'cancelled'", calendar.id):
        event = from_row(row)
        if not _blocks(event, calendar.id):
            continue
        if event.recurrence:
            found = [one for one in expand(call.store, event, calendar.time_zone, low, high, False) if one.virtual]
        else:
            found = [event] if in_range(event, calendar.time_zone, low, high) else []
        times = [one.times(calendar.time_zone) for one in found]
        spans += [(max(ms(start), low), min(ms(end), high)) for start, end in times]
    merged: list[list[int]] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return {"busy": [{"start": iso(from_ms(a, zone_name)), "end": iso(from_ms(b, zone_name))} for a, b in merged]}


def _blocks(event: CalendarEvent, calendar: str) -> bool:
    if event.data.get("transparency") == "transparent":
        return False
    mine = [one for one in event.data.get("attendees") or [] if one["email"] == calendar]
    return not (mine and mine[0]["responseStatus"] == "declined")


# -- channels


def _open_channel(call: Call, resource: str) -> dict[str, Any]:
    body = call.body
    for name in ("id", "type", "address"):
        if not body.get(name):
            raise required(name, "other")
    if body["type"] not in ("web_hook", "webhook"):
        raise ApiError(400, f"Unknown channel type: {body['type']}", "channelUnknown")
    if not body["address"].startswith("https://"):
        raise ApiError(400, f"WebHook callback must be HTTPS: {body['address']}", "push.webhookUrlNotHttps")
    if call.store.one("SELECT id FROM channels WHERE id = ?", body["id"]):
        raise ApiError(400, f"Channel id {body['id']} not unique", "channelIdNotUnique")
    resource_id = call.store.new_id("resource", 27, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
    data = {
        "kind": "api#channel",
        "id": body["id"],
        "resourceId": resource_id,
        "resourceUri": f"https://www.googleapis.com/calendar/v3/{resource}?alt=json",
        "expiration": body.get("expiration") or str(call.store.now_ms() + WEEK_MS),
        **({"token": body["token"]} if body.get("token") else {}),
    }
    call.store.insert("channels", id=body["id"], resource_id=resource_id, data={**data, "address": body["address"]})
    return data


@api.method("calendar.events.watch")
def watch_events(call: Call) -> dict[str, Any]:
    return _open_channel(call, f"calendars/{calendar_of(call).id}/events")


@api.method("calendar.acl.watch")
def watch_acl(call: Call) -> dict[str, Any]:
    return _open_channel(call, f"calendars/{calendar_of(call, 'owner').id}/acl")


@api.method("calendar.calendarList.watch")
def watch_calendar_list(call: Call) -> dict[str, Any]:
    return _open_channel(call, "users/me/calendarList")


@api.method("calendar.settings.watch")
def watch_settings(call: Call) -> dict[str, Any]:
    return _open_channel(call, "users/me/settings")


@api.method("calendar.channels.stop")
def stop_channel(call: Call) -> None:
    id, resource = call.body.get("id"), call.body.get("resourceId")
    row = call.store.one("SELECT resource_id FROM channels WHERE id = ?", id)
    if row is None or row["resource_id"] != resource:
        raise not_found(f"Channel '{id}' not found for project '0'")
    call.store.delete("channels", id=id)
