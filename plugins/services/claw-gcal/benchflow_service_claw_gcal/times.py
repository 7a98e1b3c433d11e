"""Times as the API writes them: RFC 3339 instants, all-day dates, and the zones they are shown in."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from benchflow_claw_kit import ApiError

__all__ = ["instant", "iso_ms", "moment", "parse_query_time", "shown", "zone"]

_RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?\s*([Zz]|[+-]\d\d:?\d\d)?")


@lru_cache(maxsize=512)
def _zone(name: str) -> ZoneInfo | None:
    if not re.fullmatch(r"[A-Za-z0-9_+\-]+(/[A-Za-z0-9_+\-]+)*", name):
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def zone(name: str, location: str | None = None) -> ZoneInfo:
    found = _zone(name)
    if found is None:
        raise ApiError(400, f"Invalid time zone definition: {name}.", "invalid", location=location)
    return found


def instant(text: str) -> datetime | None:
    """An RFC 3339 date and time; naive if it carries no offset, None if it is none."""
    found = _RFC3339.fullmatch(text.strip())
    if not found:
        return None
    year, month, day, hour, minute, second, _, offset = found.groups()
    try:
        at = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0))
        if offset is None:
            return at
        if offset in "Zz":
            return at.replace(tzinfo=UTC)
        return datetime.fromisoformat(at.isoformat() + (offset if ":" in offset else offset[:3] + ":" + offset[3:]))
    except ValueError:
        return None


def moment(value: dict[str, Any], default_zone: str, role: str = "start") -> datetime:
    """An EventDateTime as an aware datetime; an all-day date begins at midnight in the calendar's zone."""
    if value.get("date"):
        return datetime.combine(_day(value["date"]), datetime.min.time(), zone(default_zone))
    at = instant(value.get("dateTime") or "")
    if at is None:
        raise ApiError(400, f'Invalid value for: Invalid format: "{value.get("dateTime")}"', "invalid")
    if at.tzinfo is None:
        if not value.get("timeZone"):
            raise ApiError(400, f"Missing time zone definition for {role} time.", "required")
        return at.replace(tzinfo=zone(value["timeZone"]))
    if value.get("timeZone"):
        return at.astimezone(zone(value["timeZone"]))
    return at


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ApiError(400, f'Invalid value for: Invalid format: "{text}"', "invalid") from None


def ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def from_ms(value: int, name: str = "UTC") -> datetime:
    return datetime.fromtimestamp(value / 1000, zone(name))


def iso_ms(value: int) -> str:
    """As `created` and `updated` are written."""
    at = datetime.fromtimestamp(value / 1000, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value % 1000:03d}Z"


def iso(at: datetime) -> str:
    """With its offset, Z for UTC."""
    text = at.replace(microsecond=0).isoformat()
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text


def shown(value: dict[str, Any], calendar_zone: str, asked_zone: str | None) -> dict[str, Any]:
    """An EventDateTime as an answer shows it: in the zone asked for, else the calendar's."""
    if value.get("date"):
        return {"date": value["date"]}
    at = moment(value, calendar_zone)
    return {
        "dateTime": iso(at.astimezone(zone(asked_zone or calendar_zone))),
        "timeZone": value.get("timeZone") or calendar_zone,
    }


def parse_query_time(name: str, text: str | None) -> int | None:
    """timeMin and its like: an offset is wanted, as the real API wants it."""
    if text is None:
        return None
    at = instant(text)
    if at is None or at.tzinfo is None:
        raise ApiError(400, "Bad Request", "badRequest", location=name)
    return ms(at)


def duration(start: datetime, end: datetime) -> timedelta:
    return end - start
