"""reminders.*"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from benchflow_claw_kit.store import Row

from benchflow_service_claw_slack.call import SlackCall, SlackError
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.users import find_user

__all__: list[str] = []

Answer = dict[str, Any]
_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _show(row: Row) -> Answer:
    shown = {
        "id": row["id"],
        "creator": row["creator"],
        "user": row["user"],
        "text": row["text"],
        "recurring": bool(row["recurring"]),
    }
    return shown if row["recurring"] else shown | {"time": row["time"], "complete_ts": row["complete_ts"]}


def _when(call: SlackCall) -> tuple[int, bool]:
    """Seconds since 1970 or from now (at most a day), or words: "in 5 minutes", "tomorrow at 9am", "every Thursday"."""
    text = call.need("time").lower().strip()
    if re.fullmatch(r"\d{1,12}", text):
        number = int(text)
        at = call.now + number if number <= 86400 else number
        if not call.now < at <= call.now + 5 * 366 * 86400:
            raise SlackError("cannot_parse")
        return at, False
    found = re.fullmatch(r"in (\d{1,5}|an?) (second|minute|hour|day|week)s?", text)
    if found:
        count = 1 if found[1] in ("a", "an") else int(found[1])
        return call.now + count * _UNITS[found[2]], False
    every = re.fullmatch(r"every (.+)", text)
    day = _day(call, every[1] if every else text)
    if day is None:
        raise SlackError("cannot_parse")
    return day, bool(every)


def _day(call: SlackCall, text: str) -> int | None:
    now = datetime.fromtimestamp(call.now, UTC)
    found = re.fullmatch(r"(today|tomorrow|day|weekday|\w+day)?(?: ?at (\d{1,2})(?::(\d\d))? ?(am|pm)?)?", text)
    if not found or not text:
        return None
    hour, minute = int(found[2] or 9), int(found[3] or 0)
    if found[4] == "pm" and hour < 12:
        hour += 12
    if hour > 23 or minute > 59:
        return None
    word = found[1] or "today"
    if word in ("today", "tomorrow", "day", "weekday"):
        ahead = 1 if word == "tomorrow" else 0
    elif word in _DAYS:
        ahead = (_DAYS.index(word) - now.weekday()) % 7
    else:
        return None
    at = now.replace(hour=hour, minute=minute, second=0, microsecond=0) + timedelta(days=ahead)
    if at <= now:
        at += timedelta(days=7 if word in _DAYS else 1)
    return int(at.timestamp())


def _find(call: SlackCall) -> Row:
    row = call.store.one("SELECT * FROM reminders WHERE id = ?", call.need("reminder"))
    if row is None or call.user not in (row["user"], row["creator"]):
        raise SlackError("not_found")
    return row


@method("reminders.add", "reminders:write", people_only=True)
def add(call: SlackCall) -> Answer:
    text = call.need("text")
    at, recurring = _when(call)
    user = find_user(call.store, call.text("user") or call.user)["id"]
    reminder = "Rm" + call.store.new_id("reminder", 9, "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ")
    call.store.insert(
        "reminders",
        id=reminder,
        creator=call.user,
        user=user,
        text=text,
        time=at,
        recurring=int(recurring),
        recurrence=call.text("time") if recurring else None,
    )
    row = call.store.one("SELECT * FROM reminders WHERE id = ?", reminder)
    assert row is not None
    return {"reminder": _show(row)}


@method("reminders.list", "reminders:read", people_only=True)
def list_reminders(call: SlackCall) -> Answer:
    rows = call.store.all(
        "SELECT * FROM reminders WHERE user = ? OR creator = ? ORDER BY time, id", call.user, call.user
    )
    return {"reminders": [_show(row) for row in rows]}


@method("reminders.info", "reminders:read", people_only=True)
def info(call: SlackCall) -> Answer:
    return {"reminder": _show(_find(call))}


@method("reminders.complete", "reminders:write", people_only=True)
def complete(call: SlackCall) -> Answer:
    row = _find(call)
    if row["recurring"]:
        raise SlackError("cannot_complete_recurring")
    if row["user"] != call.user:
        raise SlackError("cannot_complete_others")
    call.store.update("reminders", {"id": row["id"]}, complete_ts=call.now)
    return {}


@method("reminders.delete", "reminders:write", people_only=True)
def delete(call: SlackCall) -> Answer:
    call.store.delete("reminders", id=_find(call)["id"])
    return {}
