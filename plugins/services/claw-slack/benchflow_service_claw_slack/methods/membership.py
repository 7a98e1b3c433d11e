"""conversations.*: who is in a channel."""

from __future__ import annotations

from typing import Any

from benchflow_claw_kit.store import Row

from benchflow_service_claw_slack.call import SlackCall, SlackError
from benchflow_service_claw_slack.methods.conversations import active, announce
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.channels import find_channel, is_member, scope_kind, show_channel
from benchflow_service_claw_slack.objects.users import find_user

__all__: list[str] = []

Answer = dict[str, Any]


def _add(call: SlackCall, row: Row, user: str, inviter: str | None = None) -> None:
    call.store.insert("members", channel=row["id"], user=user, joined=call.now)
    text = f"<@{user}> has joined the {'group' if row['kind'] == 'group' else 'channel'}"
    kind = "group_join" if row["kind"] == "group" else "channel_join"
    announce(call, row["id"], kind, text, user, **({"inviter": inviter} if inviter else {}))


@method("conversations.join")
def join(call: SlackCall) -> Answer:
    row = find_channel(call)
    call.need_scope("channels:join", "channels:write")
    if row["kind"] != "channel":
        raise SlackError("method_not_supported_for_channel_type")
    if row["is_archived"]:
        raise SlackError("is_archived")
    if is_member(call.store, row["id"], call.user):
        call.warnings.append("already_in_channel")
    else:
        _add(call, row, call.user)
    return {"channel": show_channel(call, row)}


@method("conversations.leave")
def leave(call: SlackCall) -> Answer:
    row = find_channel(call)
    call.need_scope(scope_kind(row, "write"), scope_kind(row, "manage"))
    if row["kind"] in ("im", "mpim"):
        raise SlackError("method_not_supported_for_channel_type")
    if row["is_general"]:
        raise SlackError("cant_leave_general")
    if row["is_archived"]:
        raise SlackError("is_archived")
    if not is_member(call.store, row["id"], call.user):
        return {"not_in_channel": True}
    _remove(call, row, call.user, f"<@{call.user}> has left the channel")
    return {}


def _remove(call: SlackCall, row: Row, user: str, text: str) -> None:
    announce(call, row["id"], "group_leave" if row["kind"] == "group" else "channel_leave", text, user)
    call.store.delete("members", channel=row["id"], user=user)


@method("conversations.invite")
def invite(call: SlackCall) -> Answer:
    row = find_channel(call)
    call.need_scope(scope_kind(row, "write"), scope_kind(row, "manage"), scope_kind(row, "write.invites"))
    if row["kind"] in ("im", "mpim"):
        raise SlackError("method_not_supported_for_channel_type")
    if not is_member(call.store, row["id"], call.user):
        raise SlackError("not_in_channel")
    if row["is_archived"]:
        raise SlackError("is_archived")
    users = call.listed("users")
    if not users:
        raise SlackError("no_user")
    if len(users) > 100:
        raise SlackError("too_many_users")
    faults = [fault for user in users if (fault := _cannot_invite(call, row, user))]
    good = [user for user in dict.fromkeys(users) if not _cannot_invite(call, row, user)]
    if faults and not (call.flag("force") and good):
        first = faults[0]["error"]
        raise SlackError(first, errors=faults)
    for user in good:
        _add(call, row, user, call.user)
    return {"channel": show_channel(call, row)} | ({"errors": faults} if faults else {})


def _cannot_invite(call: SlackCall, row: Row, user: str) -> Answer | None:
    found = call.store.one("SELECT deleted FROM users WHERE id = ?", user)
    error = None
    if found is None:
        error = "user_not_found"
    elif user == call.user:
        error = "cant_invite_self"
    elif found["deleted"]:
        error = "cant_invite"
    elif is_member(call.store, row["id"], user):
        error = "already_in_channel"
    return {"user": user, "ok": False, "error": error} if error else None


@method("conversations.kick")
def kick(call: SlackCall) -> Answer:
    row = active(call)
    user = find_user(call.store, call.need("user"))["id"]
    if user == call.user:
        raise SlackError("cant_kick_self")
    if row["is_general"]:
        raise SlackError("cant_kick_from_general")
    if not is_member(call.store, row["id"], user):
        raise SlackError("not_in_channel")
    _remove(call, row, user, f"<@{user}> was removed from the channel")
    return {"errors": {}}
