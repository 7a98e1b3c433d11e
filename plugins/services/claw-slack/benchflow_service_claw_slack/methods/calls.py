"""calls.*: meetings of another provider, as Slack knows them."""

from __future__ import annotations

import json
from typing import Any

from benchflow_claw_kit.store import Row

from benchflow_service_claw_slack.call import SlackCall, SlackError, bad_arguments
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.users import find_user

__all__: list[str] = []

Answer = dict[str, Any]
_PERSON = ("slack_id", "external_id", "display_name", "avatar_url")
_FIELDS = ("join_url", "desktop_app_join_url", "external_display_id", "title")


def _people(call: SlackCall, needed: bool) -> list[Answer]:
    given = call.structure("users", "invalid_arguments") or []
    if not isinstance(given, list) or (needed and not given):
        raise bad_arguments("missing required field: users")
    people: list[Answer] = []
    for one in given:
        if not isinstance(one, dict) or not (one.get("slack_id") or one.get("external_id")):
            raise bad_arguments("a user has a slack_id or an external_id")
        if one.get("slack_id"):
            find_user(call.store, str(one["slack_id"]))
        people.append({name: str(one[name]) for name in _PERSON if one.get(name)})
    return people


def _find(call: SlackCall) -> Row:
    row = call.store.one("SELECT * FROM calls WHERE id = ?", call.need("id"))
    if row is None:
        raise SlackError("not_found")
    return row


def _show(row: Row) -> Answer:
    value: Answer = {"id": row["id"], "date_start": row["date_start"], **json.loads(row["data"])}
    return {"call": value | ({"date_end": row["date_end"]} if row["date_end"] else {})}


@method("calls.add", "calls:write")
def add(call: SlackCall) -> Answer:
    external, url = call.need("external_unique_id"), call.need("join_url")
    if not call.is_bot:
        call.args.setdefault("created_by", call.user)
    maker = find_user(call.store, call.text("created_by") or call.user)["id"]
    data = {"external_unique_id": external, "created_by": maker, "users": _people(call, False)}
    data |= {name: call.text(name) for name in _FIELDS if call.has(name)}
    if not url.startswith(("http://", "https://")):
        raise bad_arguments("join_url must be an address")
    new = "R0" + call.store.new_id("call", 9, "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ")
    call.store.insert("calls", id=new, date_start=call.number("date_start", call.now), date_end=0, data=data)
    call.args["id"] = new
    return _show(_find(call))


@method("calls.info", "calls:read")
def info(call: SlackCall) -> Answer:
    return _show(_find(call))


def _change(call: SlackCall, row: Row, **data: Any) -> Answer:
    call.store.update("calls", {"id": row["id"]}, data={**json.loads(row["data"]), **data})
    return _show(_find(call))


@method("calls.update", "calls:write")
def update(call: SlackCall) -> Answer:
    return _change(call, _find(call), **{name: call.text(name) for name in _FIELDS if call.has(name)})


@method("calls.end", "calls:write")
def end(call: SlackCall) -> Answer:
    row = _find(call)
    length = call.number("duration", max(0, call.now - row["date_start"]))
    call.store.update("calls", {"id": row["id"]}, date_end=row["date_start"] + length)
    return {}


@method("calls.participants.add", "calls:write")
def add_people(call: SlackCall) -> Answer:
    row, new = _find(call), _people(call, True)
    there = json.loads(row["data"])["users"]
    _change(call, row, users=[*there, *(one for one in new if one not in there)])
    return {}


@method("calls.participants.remove", "calls:write")
def remove_people(call: SlackCall) -> Answer:
    row, gone = _find(call), _people(call, True)
    ids = {one.get("slack_id") or one.get("external_id") for one in gone}
    there = json.loads(row["data"])["users"]
    _change(call, row, users=[one for one in there if (one.get("slack_id") or one.get("external_id")) not in ids])
    return {}
