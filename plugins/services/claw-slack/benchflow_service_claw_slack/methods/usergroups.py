"""usergroups.*: @handles for several people."""

from __future__ import annotations

import json
from typing import Any

from benchflow_claw_kit.store import Row

from benchflow_service_claw_slack.call import SlackCall, SlackError
from benchflow_service_claw_slack.methods.registry import method

__all__: list[str] = []

Answer = dict[str, Any]


def _show(call: SlackCall, row: Row, users: bool = False) -> Answer:
    listed = json.loads(row["users"])
    shown = {
        "id": row["id"],
        "team_id": call.team["id"],
        "is_usergroup": True,
        "is_subteam": True,
        "name": row["name"],
        "description": row["description"],
        "handle": row["handle"],
        "is_external": False,
        "date_create": row["date_create"],
        "date_update": row["date_update"],
        "date_delete": row["date_delete"],
        "auto_type": None,
        "auto_provision": False,
        "enterprise_subteam_id": "",
        "created_by": row["created_by"],
        "updated_by": row["updated_by"],
        "deleted_by": row["updated_by"] if row["date_delete"] else None,
        "prefs": {"channels": json.loads(row["channels"]), "groups": []},
        "user_count": len(listed),
        "channel_count": len(json.loads(row["channels"])),
    }
    return shown | ({"users": listed} if users else {})


def _find(call: SlackCall) -> Row:
    row = call.store.one("SELECT * FROM usergroups WHERE id = ?", call.need("usergroup"))
    if row is None:
        raise SlackError("no_such_subteam")
    return row


def _checked(call: SlackCall, own: str = "") -> Answer:
    columns: Answer = {}
    for name in ("name", "handle", "description"):
        if call.has(name):
            columns[name] = call.text(name).removeprefix("@") if name == "handle" else call.text(name)
    for name in ("name", "handle"):
        taken = name in columns and call.store.one(
            f"SELECT 1 FROM usergroups WHERE lower({name}) = lower(?) AND id != ?", columns[name], own
        )
        if taken:
            raise SlackError("name_already_exists" if name == "name" else "handle_already_exists")
    handle = columns.get("handle")
    if handle and call.store.one("SELECT 1 FROM users WHERE name = ?", handle):
        raise SlackError("handle_already_exists")
    if call.has("channels"):
        columns["channels"] = call.listed("channels")
        if any(not call.store.one("SELECT 1 FROM channels WHERE id = ?", channel) for channel in columns["channels"]):
            raise SlackError("channel_not_found")
    return columns


def _changed(call: SlackCall, row: Row, **columns: Any) -> Answer:
    call.store.update("usergroups", {"id": row["id"]}, updated_by=call.user, date_update=call.now, **columns)
    new = call.store.one("SELECT * FROM usergroups WHERE id = ?", row["id"])
    assert new is not None
    return {"usergroup": _show(call, new, call.flag("include_users") or "users" in columns)}


@method("usergroups.create", "usergroups:write")
def create(call: SlackCall) -> Answer:
    call.need("name")
    columns = _checked(call)
    columns.setdefault("handle", columns["name"].lower().replace(" ", "-"))
    group = "S0" + call.store.new_id("usergroup", 9, "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ")
    call.store.insert(
        "usergroups",
        id=group,
        created_by=call.user,
        updated_by=call.user,
        date_create=call.now,
        date_update=call.now,
        **columns,
    )
    row = call.store.one("SELECT * FROM usergroups WHERE id = ?", group)
    assert row is not None
    return {"usergroup": _show(call, row, True)}


@method("usergroups.update", "usergroups:write")
def update(call: SlackCall) -> Answer:
    row = _find(call)
    return _changed(call, row, **_checked(call, row["id"]))


@method("usergroups.disable", "usergroups:write")
def disable(call: SlackCall) -> Answer:
    row = _find(call)
    if row["date_delete"]:
        raise SlackError("already_disabled")
    return _changed(call, row, date_delete=call.now)


@method("usergroups.enable", "usergroups:write")
def enable(call: SlackCall) -> Answer:
    row = _find(call)
    if not row["date_delete"]:
        raise SlackError("already_enabled")
    return _changed(call, row, date_delete=0)


@method("usergroups.list", "usergroups:read")
def list_groups(call: SlackCall) -> Answer:
    rows = call.store.all("SELECT * FROM usergroups ORDER BY handle")
    if not call.flag("include_disabled"):
        rows = [row for row in rows if not row["date_delete"]]
    shown = [_show(call, row, call.flag("include_users")) for row in rows]
    if not call.flag("include_count"):
        for one in shown:
            one.pop("user_count")
            one.pop("channel_count")
    return {"usergroups": shown}


@method("usergroups.users.list", "usergroups:read")
def users_list(call: SlackCall) -> Answer:
    row = _find(call)
    if row["date_delete"] and not call.flag("include_disabled"):
        raise SlackError("no_such_subteam")
    return {"users": json.loads(row["users"])}


@method("usergroups.users.update", "usergroups:write")
def users_update(call: SlackCall) -> Answer:
    row = _find(call)
    users = list(dict.fromkeys(call.listed("users")))
    if not users:
        raise SlackError("no_users_provided")
    if any(not call.store.one("SELECT 1 FROM users WHERE id = ? AND deleted = 0", user) for user in users):
        raise SlackError("invalid_users")
    return _changed(call, row, users=users)
