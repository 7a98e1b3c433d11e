"""dnd.*: when nobody wants to be disturbed."""

from __future__ import annotations

from typing import Any

from benchflow_service_claw_slack.call import SlackCall, SlackError
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.users import find_user

__all__: list[str] = []

Answer = dict[str, Any]


def _state(call: SlackCall, user: str) -> Answer:
    row = call.store.one("SELECT * FROM dnd WHERE user = ?", user) or {}
    until = row.get("snooze_until", 0)
    shown = {
        "dnd_enabled": bool(row.get("enabled", 0)),
        "next_dnd_start_ts": row.get("next_start", 1),
        "next_dnd_end_ts": row.get("next_end", 1),
    }
    if user != call.user:
        return shown
    snoozing = until > call.now
    shown |= {"snooze_enabled": snoozing}
    if snoozing:
        shown |= {"snooze_endtime": until, "snooze_remaining": until - call.now, "snooze_is_indefinite": False}
    return shown


@method("dnd.info", "dnd:read")
def info(call: SlackCall) -> Answer:
    return _state(call, find_user(call.store, call.text("user") or call.user)["id"])


@method("dnd.teamInfo", "dnd:read")
def team_info(call: SlackCall) -> Answer:
    users = call.listed("users")
    if len(users) > 50:
        raise SlackError("too_many_users")
    found = [find_user(call.store, user)["id"] for user in users]
    return {
        "users": {
            user: {k: v for k, v in _state(call, user).items() if k.startswith(("dnd", "next"))} for user in found
        }
    }


def _set(call: SlackCall, **columns: Any) -> None:
    row = call.store.one("SELECT * FROM dnd WHERE user = ?", call.user) or {"user": call.user}
    call.store.insert("dnd", replace=True, **{**row, **columns})


@method("dnd.setSnooze", "dnd:write", people_only=True)
def set_snooze(call: SlackCall) -> Answer:
    if not call.has("num_minutes"):
        raise SlackError("missing_duration")
    minutes = call.number("num_minutes", 0, 1, 60 * 24 * 365, "missing_duration")
    _set(call, snooze_until=call.now + 60 * minutes)
    state = _state(call, call.user)
    return {name: value for name, value in state.items() if name.startswith("snooze")}


@method("dnd.endSnooze", "dnd:write", people_only=True)
def end_snooze(call: SlackCall) -> Answer:
    if not _state(call, call.user)["snooze_enabled"]:
        raise SlackError("snooze_not_active")
    _set(call, snooze_until=0)
    return _state(call, call.user)


@method("dnd.endDnd", "dnd:write", people_only=True)
def end_dnd(call: SlackCall) -> Answer:
    _set(call, enabled=0, snooze_until=0)
    return {}
