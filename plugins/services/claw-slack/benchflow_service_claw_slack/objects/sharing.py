"""Who may open a canvas or a list: its maker, people and channels it was given to."""

from __future__ import annotations

from benchflow_claw_kit.store import Row

from benchflow_service_claw_slack.call import SlackCall, SlackError, bad_arguments
from benchflow_service_claw_slack.objects.channels import is_member

__all__ = ["LEVELS", "give", "level_of", "must_have", "take_away"]

LEVELS = ("read", "write", "owner")


def level_of(call: SlackCall, item: str, maker: str) -> str | None:
    if maker == call.user:
        return "owner"
    rows = call.store.all("SELECT * FROM shared_access WHERE item = ?", item)
    found = [
        row["level"]
        for row in rows
        if row["target"] == call.user
        or (row["target"][:1] in "CDG" and is_member(call.store, row["target"], call.user))
    ]
    return max(found, key=LEVELS.index, default=None)


def must_have(call: SlackCall, row: Row, level: str, missing: str) -> Row:
    """What one may not see does not exist; what one may only read is `restricted_action`."""
    have = level_of(call, row["id"], row["user"])
    if have is None:
        raise SlackError(missing)
    if LEVELS.index(have) < LEVELS.index(level):
        raise SlackError("restricted_action")
    return row


def _targets(call: SlackCall) -> list[str]:
    channels, users = call.listed("channel_ids"), call.listed("user_ids")
    if bool(channels) == bool(users):
        raise bad_arguments("exactly one of channel_ids and user_ids must be given")
    table = "channels" if channels else "users"
    for one in channels or users:
        if call.store.one(f"SELECT 1 FROM {table} WHERE id = ?", one) is None:
            raise SlackError("channel_not_found" if channels else "user_not_found")
    return channels or users


def give(call: SlackCall, item: str) -> None:
    level = call.need("access_level")
    if level not in LEVELS:
        raise bad_arguments(f"access_level must be one of {', '.join(LEVELS)}")
    if level == "owner" and call.has("channel_ids"):
        raise bad_arguments("a channel cannot be an owner")
    for target in _targets(call):
        call.store.insert("shared_access", replace=True, item=item, target=target, level=level)


def take_away(call: SlackCall, item: str) -> None:
    for target in _targets(call):
        call.store.delete("shared_access", item=item, target=target)
