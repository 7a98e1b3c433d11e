"""views.* and blocks.validate. A modal needs a trigger, which only a person's click makes: none comes here."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from benchflow_service_claw_slack.blocks import blocks_of, check_blocks
from benchflow_service_claw_slack.call import SlackCall, SlackError
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.users import find_user

__all__: list[str] = []

Answer = dict[str, Any]


def _view(call: SlackCall, kinds: tuple[str, ...]) -> Answer:
    view = call.structure("view", "invalid_arguments")
    if not isinstance(view, dict) or view.get("type") not in kinds:
        raise SlackError(
            "invalid_arguments", response_metadata={"messages": [f"[ERROR] view.type must be one of: {kinds}"]}
        )
    blocks = view.get("blocks")
    if not isinstance(blocks, list):
        raise SlackError(
            "invalid_arguments", response_metadata={"messages": ["[ERROR] missing required field: blocks"]}
        )
    check_blocks(blocks, 100)
    if view["type"] == "modal" and not isinstance(view.get("title"), dict):
        raise SlackError("invalid_arguments", response_metadata={"messages": ["[ERROR] missing required field: title"]})
    return view


def _hash(view: Answer, now: int) -> str:
    return f"{now}.{hashlib.blake2b(json.dumps(view, sort_keys=True).encode(), digest_size=4).hexdigest()}"


def _show(call: SlackCall, row: dict[str, Any]) -> Answer:
    view = json.loads(row["view"])
    facts = {
        "id": row["id"],
        "team_id": call.team["id"],
        "hash": row["hash"],
        "state": {"values": {}},
        "root_view_id": row["id"],
        "previous_view_id": row["parent"],
        "app_id": call.team["app_id"],
        "bot_id": call.me["bot_id"] or "",
    }
    usual = {"private_metadata": "", "callback_id": "", "clear_on_close": False, "notify_on_close": False}
    return {"view": {**usual, "external_id": row["external_id"] or "", **view, **facts}}


@method("views.publish")
def publish(call: SlackCall) -> Answer:
    """The app's home page for one person."""
    user = find_user(call.store, call.need("user_id"))["id"]
    view = _view(call, ("home",))
    row = call.store.one("SELECT * FROM views WHERE user = ? AND type = 'home'", user)
    if row and call.has("hash") and call.text("hash") != row["hash"]:
        raise SlackError("hash_conflict")
    view_id = row["id"] if row else "V0" + call.store.new_id("view", 9, "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ")
    new = {"id": view_id, "user": user, "type": "home", "view": view, "hash": _hash(view, call.now)}
    call.store.insert("views", replace=True, external_id=view.get("external_id"), **new)
    found = call.store.one("SELECT * FROM views WHERE id = ?", view_id)
    assert found is not None
    return _show(call, found)


@method("views.update")
def update(call: SlackCall) -> Answer:
    key = "external_id" if call.has("external_id") else "id"
    row = call.store.one(f"SELECT * FROM views WHERE {key} = ?", call.text("external_id") or call.need("view_id"))
    if row is None:
        raise SlackError("not_found")
    if call.has("hash") and call.text("hash") != row["hash"]:
        raise SlackError("hash_conflict")
    view = _view(call, (row["type"],))
    call.store.update("views", {"id": row["id"]}, view=view, hash=_hash(view, call.now))
    found = call.store.one("SELECT * FROM views WHERE id = ?", row["id"])
    assert found is not None
    return _show(call, found)


@method("views.open")
def open_view(call: SlackCall) -> Answer:
    call.need("trigger_id", "invalid_trigger_id")
    _view(call, ("modal",))
    raise SlackError("invalid_trigger_id")


@method("views.push")
def push_view(call: SlackCall) -> Answer:
    call.need("trigger_id", "invalid_trigger_id")
    _view(call, ("modal",))
    raise SlackError("invalid_trigger_id")


@method("blocks.validate", anonymous=True)
def validate(call: SlackCall) -> Answer:
    if blocks_of(call) is None:
        raise SlackError("invalid_blocks_format")
    return {}
