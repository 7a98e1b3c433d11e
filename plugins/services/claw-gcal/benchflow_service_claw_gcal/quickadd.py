"""quickAdd: a line of text into an event: when, for how long, how often, where, and the rest is its name."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from benchflow_claw_kit import ApiError

from benchflow_service_claw_gcal.times import from_ms, iso

__all__ = ["parse_text"]

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_CODES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_CLOCK = r"(?:\d{1,2}(?::\d{2})?\s*(?:am|pm)|\d{1,2}:\d{2}|noon|midnight)"


class _Line:
    """Text from which what was understood is taken away."""

    def __init__(self, text: str) -> None:
        self.text = text

    def take(self, pattern: str) -> re.Match[str] | None:
        found = re.search(pattern, self.text, re.IGNORECASE)
        if found:
            self.text = self.text[: found.start()] + " " + self.text[found.end() :]
        return found


def parse_text(text: str, now_ms: int, zone: str) -> dict[str, Any]:
    if not text.strip():
        raise ApiError(400, "Missing text.", "required", location="text")
    now = from_ms(now_ms, zone)
    line = _Line(text)
    repeat = _repeat(line)
    length = _length(line)
    clock = _clock(line)
    day = _day(line, now, repeat)
    place = (
        line.take(r"(?:\bat|\bin)\s+(?P<place>[A-Z][\w'’.-]*(?:\s+[A-Z0-9][\w'’.-]*)*)(?=\s|$|,)")
        if clock or day
        else None
    )
    summary = re.sub(r"\s+", " ", re.sub(r"\b(?:on|at|from)\s*(?=$|,)", "", line.text.strip(" ,"))).strip(" ,")
    data: dict[str, Any] = {"summary": summary or text.strip()}
    if place:
        data["location"] = place.group("place")
    data |= _span(now, day, clock, length, zone)
    if repeat:
        data["recurrence"] = [f"RRULE:{repeat}"]
    return data


def _span(
    now: datetime, day: datetime | None, clock: tuple[int, int, int | None] | None, length: timedelta | None, zone: str
) -> dict[str, Any]:
    if clock is None and day is not None and length is None:
        date = day.date()
        return {"start": {"date": date.isoformat()}, "end": {"date": (date + timedelta(days=1)).isoformat()}}
    if clock is None:
        begin = (day or now).replace(hour=now.hour, minute=now.minute, second=0, microsecond=0)
        until = None
    else:
        begin = (day or now).replace(hour=clock[0], minute=clock[1], second=0, microsecond=0)
        if day is None and begin < now:
            begin += timedelta(days=1)
        until = clock[2]
    end = begin + (length or timedelta(hours=1))
    if until is not None:
        end = begin.replace(hour=until // 60, minute=until % 60)
        end += timedelta(days=1) if end <= begin else timedelta()
    return {"start": {"dateTime": iso(begin), "timeZone": zone}, "end": {"dateTime": iso(end), "timeZone": zone}}


def _repeat(line: _Line) -> str | None:
    found = line.take(
        rf"\b(?:every\s+(?P<what>day|weekday|week|month|year|{_DAY})|(?P<word>daily|weekly|monthly|yearly))\b"
    )
    if not found:
        return None
    word = (found.group("what") or found.group("word")).lower()
    plain = {"day": "DAILY", "daily": "DAILY", "week": "WEEKLY", "weekly": "WEEKLY", "month": "MONTHLY"}
    plain |= {"monthly": "MONTHLY", "year": "YEARLY", "yearly": "YEARLY"}
    if word == "weekday":
        return "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"
    return f"FREQ={plain[word]}" if word in plain else f"FREQ=WEEKLY;BYDAY={_CODES[_weekday(word)]}"


def _weekday(word: str) -> int:
    return next(i for i, name in enumerate(_DAYS) if name.startswith(word.lower()[:3]))


def _length(line: _Line) -> timedelta | None:
    found = line.take(r"\bfor\s+(?P<n>\d{1,4}(?:\.5)?|an?|half an)\s*(?P<unit>minutes?|mins?|m|hours?|hrs?|h|days?)\b")
    if not found:
        return None
    word = found.group("n").lower()
    number = 1.0 if word in ("a", "an") else 0.5 if word == "half an" else float(word)
    unit = found.group("unit").lower()[0]
    return timedelta(minutes=number * {"m": 1, "h": 60, "d": 1440}[unit])


def _clock(line: _Line) -> tuple[int, int, int | None] | None:
    """Hour, minute, and the end in minutes of the day if there is one."""
    found = line.take(rf"\b(?:from\s+|at\s+)?(?P<a>{_CLOCK}|\d{{1,2}})\s*(?:-|–|to|until)\s*(?P<b>{_CLOCK})\b")
    if found:
        end = _minutes(found.group("b"), "")
        half = "pm" if end >= 720 else "am"
        begin = _minutes(found.group("a"), half)
        if begin > end and not re.search("[ap]m", found.group("a"), re.IGNORECASE):
            begin -= 720 if begin >= 720 else 0
        return begin // 60, begin % 60, end
    found = line.take(rf"\b(?:at\s+)?(?P<a>{_CLOCK})\b")
    if not found:
        return None
    at = _minutes(found.group("a"), "")
    return at // 60, at % 60, None


def _minutes(text: str, half: str) -> int:
    word = text.lower().replace(" ", "")
    if word in ("noon", "midnight"):
        return 720 if word == "noon" else 0
    found = re.fullmatch(r"(\d{1,2})(?::(\d{2}))?(am|pm)?", word)
    if not found:
        raise ApiError(400, "Bad Request", "badRequest")
    hour, minute = int(found.group(1)), int(found.group(2) or 0)
    half = found.group(3) or (half if hour <= 12 else "")
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return min(hour, 23) * 60 + min(minute, 59)


def _day(line: _Line, now: datetime, repeat: str | None) -> datetime | None:
    found = line.take(r"\b(?:on\s+)?(today|tonight|tomorrow)\b")
    if found:
        return now + timedelta(days=int(found.group(1).lower() == "tomorrow"))
    found = line.take(r"\b(?:on\s+)?(\d{4})-(\d{2})-(\d{2})\b")
    if found:
        return _date(now, int(found.group(1)), int(found.group(2)), int(found.group(3)))
    found = line.take(rf"\b(?:on\s+)?(?P<m>{_MONTH})\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<y>\d{{4}}))?\b")
    found = found or line.take(
        rf"\b(?:on\s+)?(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<m>{_MONTH})(?:,?\s+(?P<y>\d{{4}}))?\b"
    )
    if found:
        month = _MONTHS.index(found.group("m").lower()[:3]) + 1
        return _coming(now, found.group("y"), month, int(found.group("d")))
    found = line.take(r"\b(?:on\s+)?(\d{1,2})/(\d{1,2})(?:/(\d{4}))?\b")
    if found:
        return _coming(now, found.group(3), int(found.group(1)), int(found.group(2)))
    found = line.take(rf"\b(?:on\s+|next\s+|this\s+)?(?P<w>{_DAY})\b")
    if found:
        return now + timedelta(days=(_weekday(found.group("w")) - now.weekday()) % 7 or 7)
    if repeat and "BYDAY=" in repeat:
        days = [_CODES.index(code) for code in repeat.split("BYDAY=")[1].split(",")]
        return now + timedelta(days=min((day - now.weekday()) % 7 for day in days))
    return None


def _coming(now: datetime, year: str | None, month: int, day: int) -> datetime:
    if year:
        return _date(now, int(year), month, day)
    this = _date(now, now.year, month, day)
    return this if this.date() >= now.date() else _date(now, now.year + 1, month, day)


def _date(now: datetime, year: int, month: int, day: int) -> datetime:
    try:
        return now.replace(year=year, month=month, day=day)
    except ValueError:
        raise ApiError(400, "Bad Request", "badRequest") from None
