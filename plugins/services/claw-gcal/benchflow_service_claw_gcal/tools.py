"""What an agent gets over MCP: the calls a calendar task needs."""

from __future__ import annotations

from typing import Any

from benchflow_claw_kit import Tool

TEXT = {"type": "string"}
_TIME = {
    "type": "object",
    "description": "dateTime (RFC 3339) with timeZone, or date for a whole day",
    "properties": {"dateTime": TEXT, "date": TEXT, "timeZone": TEXT},
}
_WHERE: dict[str, Any] = {"calendarId": {**TEXT, "description": "primary, or a calendar's id"}}
_FIELDS: dict[str, Any] = {
    "summary": TEXT,
    "description": TEXT,
    "location": TEXT,
    "start": _TIME,
    "end": _TIME,
    "attendees": {"type": "array", "items": {"type": "object", "properties": {"email": TEXT}}},
    "recurrence": {"type": "array", "items": {**TEXT, "description": "RRULE:…"}},
}
_ONE = {**_WHERE, "eventId": TEXT}
_SPAN = {"timeMin": {**TEXT, "description": "RFC 3339 with offset"}, "timeMax": TEXT, "timeZone": TEXT}

TOOLS = (
    Tool("list_calendars", "List calendars.", "calendar.calendarList.list", {}),
    Tool(
        "list_events",
        "List events, series as their instances, by start.",
        "calendar.events.list",
        {**_WHERE, **_SPAN, "q": TEXT, "maxResults": {"type": "integer"}, "pageToken": TEXT},
        ("calendarId",),
        {"singleEvents": True, "orderBy": "startTime"},
    ),
    Tool("get_event", "Read one event.", "calendar.events.get", _ONE, ("calendarId", "eventId")),
    Tool(
        "create_event",
        "Make an event.",
        "calendar.events.insert",
        {**_WHERE, **_FIELDS},
        ("calendarId", "start", "end"),
    ),
    Tool(
        "update_event", "Change some fields.", "calendar.events.patch", {**_ONE, **_FIELDS}, ("calendarId", "eventId")
    ),
    Tool("delete_event", "Delete an event.", "calendar.events.delete", _ONE, ("calendarId", "eventId")),
    Tool(
        "move_event",
        "Move an event to another calendar.",
        "calendar.events.move",
        {**_ONE, "destination": TEXT},
        ("calendarId", "eventId", "destination"),
    ),
    Tool(
        "quick_add",
        "Make an event from a line of text.",
        "calendar.events.quickAdd",
        {**_WHERE, "text": TEXT},
        ("calendarId", "text"),
    ),
    Tool(
        "free_busy",
        "When calendars are busy.",
        "calendar.freebusy.query",
        {**_SPAN, "items": {"type": "array", "items": {"type": "object", "properties": {"id": TEXT}}}},
        ("timeMin", "timeMax", "items"),
    ),
)
