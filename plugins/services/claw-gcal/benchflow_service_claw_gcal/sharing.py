"""acl: who may see or change a calendar."""

from __future__ import annotations

from typing import Any

from benchflow_claw_kit import ApiError, Call, Row, Store, invalid, not_found

from benchflow_service_claw_gcal.access import ROLES, Calendar, calendar_of, etag, grant, next_version
from benchflow_service_claw_gcal.contract import api
from benchflow_service_claw_gcal.preconditions import check_match
from benchflow_service_claw_gcal.syncing import page_of


def rule_json(row: Row) -> dict[str, Any]:
    scope = {"type": row["scope_type"]}
    if row["scope_type"] != "default":
        scope["value"] = row["scope_value"]
    return {
        "kind": "calendar#aclRule",
        "etag": etag(row["version"]),
        "id": row["id"],
        "scope": scope,
        "role": "none" if row["deleted"] else row["role"],
    }


def _rule(call: Call, calendar: Calendar) -> Row:
    row = call.store.one("SELECT * FROM acl WHERE calendar_id = ? AND id = ?", calendar.id, call["ruleId"])
    if row is None or row["deleted"]:
        raise not_found("Not Found")
    return row


@api.method("calendar.acl.list")
def list_rules(call: Call) -> dict[str, Any]:
    calendar = calendar_of(call, "owner")
    rows = call.store.all("SELECT rowid, * FROM acl WHERE calendar_id = ? ORDER BY rowid", calendar.id)

    def wanted(row: Row, syncing: bool) -> bool:
        return bool(not row["deleted"] or syncing or call.get("showDeleted"))

    rows, beside = page_of(call, f"acl:{calendar.id}", rows, wanted, 100, 250)
    return {"kind": "calendar#acl", **beside, "items": [rule_json(row) for row in rows]}


@api.method("calendar.acl.get")
def get_rule(call: Call) -> dict[str, Any]:
    return rule_json(_rule(call, calendar_of(call, "owner")))


def _checked_role(call: Call) -> str:
    role = call.body.get("role")
    if role is None:
        raise ApiError(400, "Missing role.", "required")
    if role not in ROLES:
        raise invalid("Invalid role value.", None)
    return str(role)


@api.method("calendar.acl.insert")
def insert_rule(call: Call) -> dict[str, Any]:
    calendar = calendar_of(call, "owner")
    role = _checked_role(call)
    scope = call.body.get("scope") or {}
    kind, value = scope.get("type"), str(scope.get("value") or "").lower()
    if kind not in ("default", "user", "group", "domain"):
        raise ApiError(
            400,
            "Missing scope type." if kind is None else "Invalid scope type.",
            "required" if kind is None else "invalid",
        )
    if kind == "default" and role in ("writer", "owner", "writerWithoutPrivateAccess"):
        raise invalid("Invalid role for the default scope.", None)
    if (kind in ("user", "group") and "@" not in value) or (kind != "default" and not value):
        raise invalid("Invalid scope value.", None)
    if value == calendar.owner:
        raise _own_level()
    id = grant(call.store, calendar.id, role, kind, "" if kind == "default" else value)
    if kind == "user" and role != "none" and call.store.one("SELECT email FROM users WHERE email = ?", value):
        _share(call.store, value, calendar.id)
    row = call.store.one("SELECT * FROM acl WHERE calendar_id = ? AND id = ?", calendar.id, id)
    assert row is not None
    return rule_json(row)


def _share(store: Store, user: str, calendar: str) -> None:
    """A calendar shared with somebody shows up in their list."""
    if (
        store.one("SELECT user FROM calendar_list WHERE user = ? AND calendar_id = ? AND deleted = 0", user, calendar)
        is None
    ):
        data = {"colorId": "20", "selected": True}
        store.insert(
            "calendar_list", True, user=user, calendar_id=calendar, data=data, deleted=0, version=next_version(store)
        )


def _own_level() -> ApiError:
    return ApiError(403, "Cannot change your own access level.", "cannotChangeOwnAcl", domain="calendar")


def _change_rule(call: Call) -> dict[str, Any]:
    calendar = calendar_of(call, "owner")
    row = _rule(call, calendar)
    check_match(call, etag(row["version"]))
    role = _checked_role(call) if "role" in call.body else row["role"]
    if row["scope_value"] == calendar.owner and role != "owner":
        raise _own_level()
    call.store.update(
        "acl",
        {"calendar_id": calendar.id, "id": row["id"]},
        role=role,
        deleted=int(role == "none"),
        version=next_version(call.store),
    )
    changed = call.store.one("SELECT * FROM acl WHERE calendar_id = ? AND id = ?", calendar.id, row["id"])
    assert changed is not None
    return rule_json(changed)


@api.method("calendar.acl.update")
def update_rule(call: Call) -> dict[str, Any]:
    _checked_role(call)
    return _change_rule(call)


@api.method("calendar.acl.patch")
def patch_rule(call: Call) -> dict[str, Any]:
    return _change_rule(call)


@api.method("calendar.acl.delete")
def delete_rule(call: Call) -> None:
    calendar = calendar_of(call, "owner")
    row = _rule(call, calendar)
    if row["scope_value"] == calendar.owner:
        raise _own_level()
    call.store.update("acl", {"calendar_id": calendar.id, "id": row["id"]}, deleted=1, version=next_version(call.store))
