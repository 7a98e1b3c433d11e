"""Who may do what with which calendar."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from benchflow_claw_kit import ApiError, Call, Row, Store, not_found

__all__ = ["Calendar", "calendar_of", "create_calendar", "create_user", "etag", "need", "next_version", "user_of"]

ROLES = ("none", "freeBusyReader", "reader", "writerWithoutPrivateAccess", "writer", "owner")
DEFAULT_ZONE = "UTC"
SETTINGS = {
    "autoAddHangouts": "true",
    "dateFieldOrder": "MDY",
    "defaultEventLength": "60",
    "format24HourTime": "false",
    "hideInvitations": "false",
    "hideWeekends": "false",
    "locale": "en",
    "remindOnRespondedEventsOnly": "false",
    "showDeclinedEvents": "true",
    "timezone": DEFAULT_ZONE,
    "useKeyboardShortcuts": "true",
    "weekStart": "0",
}


@dataclass(frozen=True)
class Calendar:
    id: str
    owner: str
    summary: str
    time_zone: str
    data: dict[str, Any]
    version: int
    sync_floor: int
    user: str
    """Who asks."""
    role: str
    """What they may do here."""

    @property
    def is_primary(self) -> bool:
        return self.id == self.owner


def next_version(store: Store) -> int:
    return store.count("version")


def etag(version: int) -> str:
    return f'"{3_500_000_000_000_000 + version * 2000}"'


def create_user(
    store: Store, email: str, name: str = "", time_zone: str = DEFAULT_ZONE, settings: dict[str, str] | None = None
) -> None:
    email = email.lower()
    given = {**SETTINGS, "timezone": time_zone, **(settings or {})}
    store.insert("users", email=email, name=name, settings=given, position=store.count("user"))
    create_calendar(store, email, email, {"summary": email, "timeZone": time_zone})


def create_calendar(
    store: Store, id: str, owner: str, data: dict[str, Any], entry: dict[str, Any] | None = None
) -> None:
    extra = {name: value for name, value in data.items() if name not in ("id", "summary", "timeZone", "etag", "kind")}
    store.insert(
        "calendars",
        id=id,
        owner=owner,
        summary=data["summary"],
        time_zone=data.get("timeZone", DEFAULT_ZONE),
        data=extra,
        version=next_version(store),
        sync_floor=0,
    )
    grant(store, id, "owner", "user", owner)
    listed = {"colorId": "14" if id == owner else "20", "selected": True, **(entry or {})}
    if id == owner:
        listed.setdefault("defaultReminders", [{"method": "popup", "minutes": 30}])
    store.insert(
        "calendar_list", replace=True, user=owner, calendar_id=id, data=listed, deleted=0, version=next_version(store)
    )


def grant(store: Store, calendar: str, role: str, kind: str, value: str) -> str:
    id = kind if kind == "default" else f"{kind}:{value}"
    store.insert(
        "acl",
        replace=True,
        calendar_id=calendar,
        id=id,
        role=role,
        scope_type=kind,
        scope_value=value,
        deleted=int(role == "none"),
        version=next_version(store),
    )
    return id


def user_of(call: Call) -> str:
    """A token's user that is new here gets a calendar of their own."""
    asked = (call.principal.user or "").lower()
    if not asked:
        return str(call.store.value("SELECT email FROM users ORDER BY position LIMIT 1"))
    if call.store.one("SELECT email FROM users WHERE email = ?", asked) is None:
        with call.store.transaction():
            create_user(call.store, asked)
    return asked


def role_of(store: Store, row: Row, user: str) -> str:
    if row["owner"] == user:
        return "owner"
    domain = user.rpartition("@")[2]
    rules = store.all("SELECT role, scope_type, scope_value FROM acl WHERE calendar_id = ? AND deleted = 0", row["id"])
    roles = [
        rule["role"]
        for rule in rules
        if rule["scope_type"] == "default"
        or (rule["scope_type"] in ("user", "group") and rule["scope_value"] == user)
        or (rule["scope_type"] == "domain" and rule["scope_value"] == domain)
    ]
    return max(roles, key=ROLES.index, default="none")


def find_calendar(store: Store, id: str, user: str, admin: bool = False) -> Calendar | None:
    id = user if id == "primary" else id.lower() if "@" in id else id
    row = store.one("SELECT * FROM calendars WHERE id = ?", id)
    if row is None:
        return None
    role = role_of(store, row, user)
    if role == "none" and not admin:
        return None
    fields = {name: row[name] for name in ("id", "owner", "summary", "time_zone", "version", "sync_floor")}
    return Calendar(**fields, data=json.loads(row["data"]), user=user, role=role)


def calendar_of(call: Call, wanted: str = "reader", name: str = "calendarId") -> Calendar:
    """The calendar a call names. One that cannot be seen is not there; one that cannot be changed says so."""
    found = find_calendar(call.store, call.path.get(name) or str(call.get(name)), user_of(call))
    if found is None:
        raise not_found("Not Found")
    need(found, wanted)
    return found


def need(calendar: Calendar, wanted: str) -> None:
    if ROLES.index(calendar.role) >= ROLES.index(wanted):
        return
    raise ApiError(403, f"You need to have {wanted} access to this calendar.", "requiredAccessLevel", domain="calendar")
