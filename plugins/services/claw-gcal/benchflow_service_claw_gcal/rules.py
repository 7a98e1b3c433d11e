"""What may be in an event: the body of a call checked and put into the form that is stored."""

from __future__ import annotations

import re
from typing import Any

from benchflow_claw_kit import ApiError, Call, invalid

from benchflow_service_claw_gcal.access import Calendar
from benchflow_service_claw_gcal.calendars import check_reminder
from benchflow_service_claw_gcal.colors import EVENT_COLORS
from benchflow_service_claw_gcal.conferences import conference
from benchflow_service_claw_gcal.recurrence import check_recurrence
from benchflow_service_claw_gcal.times import moment, zone

__all__ = ["checked", "merged", "new_data"]

WRITABLE = (
    *("summary", "description", "location", "colorId", "start", "end", "endTimeUnspecified", "recurrence", "attendees"),
    *("transparency", "visibility", "reminders", "extendedProperties", "source", "gadget", "anyoneCanAddSelf"),
    *("guestsCanInviteOthers", "guestsCanModify", "guestsCanSeeOtherGuests", "eventType", "workingLocationProperties"),
    *("outOfOfficeProperties", "focusTimeProperties", "birthdayProperties", "attachments", "conferenceData"),
)
_WORDS = {
    "visibility": ("default", "public", "private", "confidential"),
    "transparency": ("opaque", "transparent"),
    "eventType": ("default", "outOfOffice", "focusTime", "workingLocation", "fromGmail", "birthday"),
}
_RESPONSES = ("needsAction", "declined", "tentative", "accepted")
_MERGED = ("start", "end", "reminders", "extendedProperties", "source", "conferenceData", "gadget")
MAX_REMINDERS = 5


def new_data(call: Call) -> dict[str, Any]:
    """The writable fields of a body, nulls gone."""
    return {name: _bare(call.body[name]) for name in _allowed(call) if call.body.get(name) is not None}


def merged(call: Call, old: dict[str, Any]) -> dict[str, Any]:
    """Patch: fields not sent stay, null takes away, objects are merged, lists replaced."""
    data = dict(old)
    for name in _allowed(call):
        if name not in call.body:
            continue
        value = call.body[name]
        if value is None:
            data.pop(name, None)
        elif name in _MERGED and isinstance(data.get(name), dict):
            data[name] = _merge(_other_kind(name, data[name], value), value)
        else:
            data[name] = _bare(value)
    return data


def _other_kind(name: str, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """A date that becomes a time is no date any more."""
    if name not in ("start", "end"):
        return old
    dropped = "date" if new.get("dateTime") else "dateTime" if new.get("date") else ""
    return {key: value for key, value in old.items() if key != dropped}


def _merge(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return _bare(new)
    result = dict(old)
    for name, value in new.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merge(result.get(name), value)
    return result


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _bare(item) for name, item in value.items() if item is not None}
    return [_bare(item) for item in value] if isinstance(value, list) else value


def _allowed(call: Call) -> list[str]:
    hidden = set()
    if not call.get("supportsAttachments"):
        hidden.add("attachments")
    if call.get("conferenceDataVersion", 0) != 1:
        hidden.add("conferenceData")
    return [name for name in WRITABLE if name not in hidden]


def checked(call: Call, data: dict[str, Any], calendar: Calendar) -> dict[str, Any]:
    """The same data, or the refusal the real API gives."""
    _check_times(data, calendar.time_zone)
    for name, words in _WORDS.items():
        if data.get(name) is not None and data[name] not in words:
            raise invalid(f"Invalid {name} value.", None)
    if data.get("colorId") is not None and data["colorId"] not in EVENT_COLORS:
        raise invalid("Invalid color id value.", None)
    if "attendees" in data:
        data["attendees"] = _attendees(data["attendees"], calendar)
    _check_reminders(data.get("reminders"))
    if data.get("conferenceData", {}).get("createRequest"):
        data["conferenceData"] = conference(call.store, data["conferenceData"])
    return data


def _check_times(data: dict[str, Any], calendar_zone: str) -> None:
    start, end = data.get("start"), data.get("end")
    if not start or not (start.get("date") or start.get("dateTime")):
        raise ApiError(400, "Missing start time.", "required")
    if not end or not (end.get("date") or end.get("dateTime")):
        raise ApiError(400, "Missing end time.", "required")
    both = (bool(start.get("date")), bool(end.get("date")))
    if both[0] != both[1] or (start.get("date") and start.get("dateTime")) or (end.get("date") and end.get("dateTime")):
        raise ApiError(400, "Start and end times must either both be date or both be dateTime.", "invalid")
    for one in (start, end):
        if one.get("timeZone"):
            zone(one["timeZone"])
    begins, ends = moment(start, calendar_zone), moment(end, calendar_zone, "end")
    if ends < begins:
        raise ApiError(400, "The specified time range is empty.", "timeRangeEmpty", domain="calendar")
    lines = data.get("recurrence") or []
    if lines and not start.get("date") and not start.get("timeZone"):
        raise ApiError(400, "Missing time zone definition for start time.", "required")
    if lines:
        check_recurrence(lines, begins, bool(start.get("date")))
    if "recurrence" in data and not lines:
        del data["recurrence"]


def _attendees(given: list[dict[str, Any]], calendar: Calendar) -> list[dict[str, Any]]:
    known: dict[str, dict[str, Any]] = {}
    for one in given:
        email = str(one.get("email") or "").strip().lower()
        if not re.fullmatch(r"[^@\s]+@[^@\s]+", email):
            raise ApiError(400, "Invalid attendee email.", "invalid")
        status = one.get("responseStatus", "needsAction")
        if status not in _RESPONSES:
            raise invalid("Invalid attendee response status.", None)
        fields = {name: value for name, value in one.items() if name not in ("self", "organizer", "id")}
        known[email] = {**fields, "email": email, "responseStatus": status}
    return list(known.values())


def _check_reminders(reminders: dict[str, Any] | None) -> None:
    if not reminders:
        return
    overrides = reminders.get("overrides") or []
    if reminders.get("useDefault") and overrides:
        raise ApiError(
            400,
            "Cannot specify both default reminders and overrides at the same time.",
            "cannotUseDefaultRemindersAndSpecifyOverride",
            domain="calendar",
        )
    if len(overrides) > MAX_REMINDERS:
        raise invalid("Too many reminder overrides.", None)
    for reminder in overrides:
        check_reminder(reminder)
