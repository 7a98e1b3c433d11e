"""Recurring events: the lines of `recurrence` checked, and their instances computed in the event's own zone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from heapq import merge
from typing import Any

from benchflow_claw_kit import ApiError

from benchflow_service_claw_gcal.rrule import Rule, parse_rule
from benchflow_service_claw_gcal.times import zone

__all__ = ["check_recurrence", "instance_key", "key_moment", "occurrences"]

MAX_LINES = 100
_UNTIL = re.compile(r"(?:^|;)UNTIL=(\d{8})(?:T(\d{6})(Z?))?(?=;|$)", re.IGNORECASE)


def check_recurrence(lines: list[str], start: datetime, all_day: bool) -> None:
    """Raises for what Calendar would not take."""
    try:
        if len(lines) > MAX_LINES:
            raise ValueError("too many lines")
        _read(lines, start)
    except (ValueError, KeyError, OverflowError, ApiError):
        raise ApiError(400, "Invalid recurrence rule.", "invalid") from None


def occurrences(
    lines: list[str], start: datetime, until: datetime, all_day: bool, low: datetime | None = None
) -> Iterator[datetime]:
    """Starts of the instances in order, up to `until`, in the event's zone. Those before `low` may be left out."""
    rules, out_rules, dates, out_dates = _read(lines, start)
    begin, last = start.replace(tzinfo=None), until.astimezone(start.tzinfo).replace(tzinfo=None)
    floor = low.astimezone(start.tzinfo).replace(tzinfo=None) if low else None
    excluded = {at for rule in out_rules for at in rule.between(begin, floor, last)} | out_dates
    before = None
    for at in merge(*(rule.between(begin, floor, last) for rule in rules), sorted(dates)):
        if at > last:
            return
        if at != before and at not in excluded:
            yield at.replace(tzinfo=start.tzinfo)
        before = at


def _read(lines: list[str], start: datetime) -> tuple[list[Rule], list[Rule], set[datetime], set[datetime]]:
    """Naive local times: a meeting at nine stays at nine when the clocks change."""
    rules: dict[str, list[Rule]] = {"RRULE": [], "EXRULE": []}
    dates: dict[str, set[datetime]] = {"RDATE": set(), "EXDATE": set()}
    for line in lines:
        head, mark, value = line.partition(":")
        name = head.split(";", 1)[0].upper()
        if not mark:
            raise ValueError(line)
        if name in rules:
            rules[name].append(_rule(value, start.tzinfo))
        else:
            dates[name] |= {_listed_date(text.strip(), head, start) for text in value.split(",")}
    if not rules["RRULE"]:
        dates["RDATE"].add(start.replace(tzinfo=None))
    return rules["RRULE"], rules["EXRULE"], dates["RDATE"], dates["EXDATE"]


def _rule(value: str, local_zone: Any) -> Rule:
    found = _UNTIL.search(value)
    if not found:
        if "UNTIL" in value.upper():
            raise ValueError(value)
        return parse_rule(value, None)
    day, clock, utc = found.groups()
    until = datetime.strptime(day + (clock or "235959"), "%Y%m%d%H%M%S")
    if utc:
        until = until.replace(tzinfo=UTC).astimezone(local_zone).replace(tzinfo=None)
    return parse_rule(value, until)


def _listed_date(text: str, head: str, start: datetime) -> datetime:
    zoned = re.search(r"TZID=([^;:]+)", head)
    if len(text) == 8:
        return datetime.strptime(text, "%Y%m%d").replace(hour=start.hour, minute=start.minute, second=start.second)
    at = datetime.strptime(text.rstrip("Zz"), "%Y%m%dT%H%M%S")
    if text[-1] in "Zz":
        return at.replace(tzinfo=UTC).astimezone(start.tzinfo).replace(tzinfo=None)
    if zoned:
        return at.replace(tzinfo=zone(zoned.group(1))).astimezone(start.tzinfo).replace(tzinfo=None)
    return at


def instance_key(at: datetime, all_day: bool) -> str:
    """What an instance's id ends with."""
    return at.strftime("%Y%m%d") if all_day else at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def key_moment(key: str, local_zone: Any) -> datetime | None:
    try:
        if len(key) == 8:
            return datetime.strptime(key, "%Y%m%d").replace(tzinfo=local_zone)
        return datetime.strptime(key, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).astimezone(local_zone)
    except (ValueError, OverflowError):
        return None
