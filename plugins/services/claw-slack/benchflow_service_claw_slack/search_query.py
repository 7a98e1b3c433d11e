"""The search box: words, phrases, and what stands before a colon."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

__all__ = ["MessageQuery", "Term", "parse"]

OPERATORS = {"from", "in", "to", "with", "has", "hasmy", "is", "before", "after", "on", "during", "type"}
_TOKEN = re.compile(r'(-?)(?:(\w+):)?(?:"([^"]*)"|(\S+))')
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)


@dataclass(frozen=True, slots=True)
class Term:
    name: str
    """One of OPERATORS, or `word`, or `phrase`."""
    value: str
    negated: bool = False

    def matches_text(self, text: str) -> bool:
        if self.name == "phrase":
            return self.value.lower() in text.lower()
        word = self.value.lower()
        pattern = (
            re.escape(word[:-1]) + r"\w*" if word.endswith("*") and len(word) > 3 else re.escape(word) + r"(?:s|es)?"
        )
        return re.search(rf"(?<!\w){pattern}(?!\w)", text.lower()) is not None


@dataclass(slots=True)
class MessageQuery:
    terms: list[Term] = field(default_factory=list)

    @property
    def words(self) -> list[Term]:
        return [term for term in self.terms if term.name in ("word", "phrase")]

    @property
    def operators(self) -> list[Term]:
        return [term for term in self.terms if term.name not in ("word", "phrase")]


def parse(text: str) -> MessageQuery:
    query = MessageQuery()
    for found in _TOKEN.finditer(text):
        minus, name, quoted, plain = found.groups()
        value = quoted if quoted is not None else plain
        if name and name.lower() in OPERATORS:
            if name.lower() == "has" and value.startswith(":") and not value.endswith(":"):
                value += ":"
            query.terms.append(Term(name.lower(), value, bool(minus)))
            continue
        if name:
            value = f"{name}:{value}"
        if value:
            query.terms.append(Term("phrase" if quoted is not None else "word", value, bool(minus)))
    return query


def span(value: str, now: int) -> tuple[int, int] | None:
    """First second of a date's span and of what follows it: a day, a month or a year; None if it is no date."""
    today = datetime.fromtimestamp(now, UTC).date()
    text = value.lower().strip()
    if text in ("today", "yesterday"):
        day = today - timedelta(days=text == "yesterday")
        return _seconds(day), _seconds(day + timedelta(days=1))
    if text in ("week", "this-week", "last-week"):
        monday = today - timedelta(days=today.weekday() + (7 if text == "last-week" else 0))
        return _seconds(monday), _seconds(monday + timedelta(days=7))
    if text in ("month", "year"):
        return _period(today.year, today.month if text == "month" else None)
    if text in _MONTHS:
        month = _MONTHS.index(text) + 1
        return _period(today.year - (month > today.month), month)
    found = re.fullmatch(r"(\d{4})(?:[-/](\d{1,2}))?(?:[-/](\d{1,2}))?", text)
    american = re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4})", text)
    try:
        if american:
            day = date(int(american[3]), int(american[1]), int(american[2]))
        elif found and found[3]:
            day = date(int(found[1]), int(found[2]), int(found[3]))
        elif found:
            return _period(int(found[1]), int(found[2]) if found[2] else None)
        else:
            return None
        return _seconds(day), _seconds(day + timedelta(days=1))
    except (ValueError, OverflowError):
        return None


def _period(year: int, month: int | None) -> tuple[int, int]:
    if month is None:
        return _seconds(date(year, 1, 1)), _seconds(date(year + 1, 1, 1))
    following = date(year + month // 12, month % 12 + 1, 1)
    return _seconds(date(year, month, 1)), _seconds(following)


def _seconds(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
