"""RFC 5545 recurrence rules by days, weeks, months and years, on naive local times.

Written here and not taken from dateutil because every walk must end: there, a rule that never matches (30 February)
runs to the year 9999 and would hold the service for seconds. The tests compare the two.
"""

from __future__ import annotations

import re
from calendar import isleap, monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

__all__ = ["Rule", "parse_rule"]

_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_NUMBERS = {
    "BYMONTH": (1, 12),
    "BYMONTHDAY": (-31, 31),
    "BYYEARDAY": (-366, 366),
    "BYWEEKNO": (-53, 53),
    "BYSETPOS": (-366, 366),
}
_DAY = timedelta(days=1)
MAX_PERIODS = 400_000


@dataclass(frozen=True)
class Rule:
    frequency: str
    interval: int = 1
    count: int | None = None
    until: datetime | None = None
    """Local time."""
    week_start: int = 0
    months: tuple[int, ...] = ()
    month_days: tuple[int, ...] = ()
    year_days: tuple[int, ...] = ()
    weeks: tuple[int, ...] = ()
    days: tuple[tuple[int, int], ...] = ()
    """(ordinal or 0, weekday)."""
    positions: tuple[int, ...] = ()

    def between(self, start: datetime, low: datetime | None, last: datetime) -> Iterator[datetime]:
        """Occurrences from `start` to `last`, in order. What ends before `low` may be left out."""
        rule = self._with_defaults(start)
        last = min(last, self.until) if self.until else last
        seen = 0
        for period in rule._periods(start, low if self.count is None else None, last):
            for day in rule._chosen(period):
                at = datetime.combine(day, start.time())
                if at < start:
                    continue
                if at > last or (self.count is not None and seen >= self.count):
                    return
                seen += 1
                yield at

    def _with_defaults(self, start: datetime) -> Rule:
        if self.weeks or self.year_days or self.month_days or self.days:
            return self
        if self.frequency == "YEARLY":
            return _changed(self, months=self.months or (start.month,), month_days=(start.day,))
        if self.frequency == "MONTHLY":
            return _changed(self, month_days=(start.day,))
        if self.frequency == "WEEKLY":
            return _changed(self, days=((0, start.weekday()),))
        return self

    def _periods(self, start: datetime, low: datetime | None, last: datetime) -> Iterator[list[date]]:
        """The days of each year, month, week or day that counts."""
        skipped = self._skipped(start, low)
        for number in range(skipped, skipped + MAX_PERIODS):
            try:
                days = self._days_of(start.date(), number * self.interval)
            except (OverflowError, ValueError):
                return
            if not days or days[0] > last.date():
                return
            yield days

    def _skipped(self, start: datetime, low: datetime | None) -> int:
        """How many periods lie wholly before `low`."""
        if low is None or low <= start:
            return 0
        length = {"DAILY": 1, "WEEKLY": 7, "MONTHLY": 31, "YEARLY": 366}[self.frequency] * self.interval
        return max(0, (low - start).days // length - 1)

    def _days_of(self, start: date, steps: int) -> list[date]:
        if self.frequency == "DAILY":
            return [start + steps * _DAY]
        if self.frequency == "WEEKLY":
            first = start - ((start.weekday() - self.week_start) % 7) * _DAY + 7 * steps * _DAY
            return [first + i * _DAY for i in range(7)]
        if self.frequency == "MONTHLY":
            year, month = divmod(start.year * 12 + start.month - 1 + steps, 12)
            first = date(year, month + 1, 1)
            return [first + i * _DAY for i in range(monthrange(year, month + 1)[1])]
        first = date(start.year + steps, 1, 1)
        return [first + i * _DAY for i in range(366 if isleap(first.year) else 365)]

    def _chosen(self, period: list[date]) -> list[date]:
        days = [day for day in period if self._matches(day)]
        if not self.positions:
            return days
        picked = {days[p - 1 if p > 0 else p] for p in self.positions if p and -len(days) <= p <= len(days)}
        return sorted(picked)

    def _matches(self, day: date) -> bool:
        if self.months and day.month not in self.months:
            return False
        if self.month_days:
            length = monthrange(day.year, day.month)[1]
            if day.day not in self.month_days and day.day - length - 1 not in self.month_days:
                return False
        if self.year_days:
            number, length = day.timetuple().tm_yday, 366 if isleap(day.year) else 365
            if number not in self.year_days and number - length - 1 not in self.year_days:
                return False
        if self.weeks and not self._in_weeks(day):
            return False
        return not self.days or any(self._is_day(day, ordinal, weekday) for ordinal, weekday in self.days)

    def _is_day(self, day: date, ordinal: int, weekday: int) -> bool:
        if day.weekday() != weekday:
            return False
        if not ordinal or self.frequency in ("DAILY", "WEEKLY"):
            return True
        if self.frequency == "MONTHLY" or self.months:
            number, length = day.day, monthrange(day.year, day.month)[1]
        else:
            number, length = day.timetuple().tm_yday, 366 if isleap(day.year) else 365
        return ordinal in ((number - 1) // 7 + 1, -((length - number) // 7 + 1))

    def _in_weeks(self, day: date) -> bool:
        """Week numbers of the day's year; week 1 is the first with four days or more in it."""
        first = date(day.year, 1, 1)
        offset = (first.weekday() - self.week_start) % 7
        begin = first - offset * _DAY + (7 * _DAY if offset > 3 else timedelta())
        length = 366 if isleap(day.year) else 365
        total = ((date(day.year, 12, 31) - begin).days + 1 + 3) // 7
        number = (day - begin).days // 7 + 1
        if number < 1 or number > total:
            return False
        return length > 0 and (number in self.weeks or number - total - 1 in self.weeks)


def _changed(rule: Rule, **fields: object) -> Rule:
    from dataclasses import replace

    return replace(rule, **fields)  # type: ignore[arg-type]


def parse_rule(text: str, until: datetime | None) -> Rule:
    """The value of an RRULE; UNTIL was read by the caller, who knows the zone. ValueError for what is no rule."""
    fields: dict[str, str] = {}
    for part in text.strip(";").split(";"):
        name, mark, value = part.partition("=")
        if not mark or not value or name.upper() in fields:
            raise ValueError(part)
        fields[name.upper()] = value.upper()
    frequency = fields.pop("FREQ")
    if frequency not in ("DAILY", "WEEKLY", "MONTHLY", "YEARLY"):
        raise ValueError(frequency)
    interval, count = int(fields.pop("INTERVAL", "1")), fields.pop("COUNT", None)
    if not 1 <= interval <= 10_000 or (count is not None and (int(count) < 1 or until)):
        raise ValueError(text)
    fields.pop("UNTIL", None)
    week_start = _DAYS.index(fields.pop("WKST", "MO"))
    days = tuple(_weekday(one) for one in fields.pop("BYDAY").split(",")) if "BYDAY" in fields else ()
    numbers = {name: _numbers(fields.pop(name), name) for name in _NUMBERS if name in fields}
    if fields:
        raise ValueError(f"{next(iter(fields))} is not supported")
    return Rule(
        frequency,
        interval,
        int(count) if count else None,
        until,
        week_start,
        numbers.get("BYMONTH", ()),
        numbers.get("BYMONTHDAY", ()),
        numbers.get("BYYEARDAY", ()),
        numbers.get("BYWEEKNO", ()),
        days,
        numbers.get("BYSETPOS", ()),
    )


def _weekday(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)", text)
    if not found or found.group(1) in ("0", "+0", "-0"):
        raise ValueError(text)
    return int(found.group(1) or 0), _DAYS.index(found.group(2))


def _numbers(text: str, name: str) -> tuple[int, ...]:
    low, high = _NUMBERS[name]
    values = tuple(int(one) for one in text.split(","))
    if any(not low <= value <= high or value == 0 for value in values):
        raise ValueError(f"{name}={text}")
    return values
