"""Direct messages: one for each pair of people, one for each group."""

from __future__ import annotations

from collections.abc import Sequence

from benchflow_claw_kit.store import Row, Store

from benchflow_service_claw_slack.call import SlackCall, SlackError

__all__ = ["direct_message", "make_channel", "new_channel_id", "open_with"]

_ALPHABET = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"


def new_channel_id(store: Store, kind: str) -> str:
    letter = "D" if kind == "im" else "C"
    return letter + "0" + store.new_id("channel", 9, _ALPHABET)


def make_channel(
    store: Store, kind: str, name: str | None, creator: str, members: Sequence[str], id: str | None = None
) -> Row:
    now = store.now_ms()
    channel = id or new_channel_id(store, kind)
    store.insert("channels", id=channel, name=name, kind=kind, creator=creator, created=now // 1000, updated=now)
    for user in dict.fromkeys(members):
        store.insert("members", channel=channel, user=user, joined=now // 1000)
    row = store.one("SELECT * FROM channels WHERE id = ?", channel)
    assert row is not None
    return row


def direct_message(call: SlackCall, user: str) -> Row:
    return open_with(call, [user])[0]


def open_with(call: SlackCall, users: Sequence[str], create: bool = True) -> tuple[Row, bool]:
    """The conversation of exactly these people and the caller, made if need be; and whether it was open."""
    everyone = sorted({call.user, *users})
    kind = "im" if len(everyone) <= 2 else "mpim"
    for row in call.store.all("SELECT * FROM channels WHERE kind = ?", kind):
        have = call.store.all("SELECT user FROM members WHERE channel = ? ORDER BY user", row["id"])
        if [one["user"] for one in have] == everyone:
            mine = call.store.value("SELECT is_open FROM members WHERE channel = ? AND user = ?", row["id"], call.user)
            call.store.run("UPDATE members SET is_open = 1 WHERE channel = ? AND user = ?", row["id"], call.user)
            return row, bool(mine)
    if not create:
        raise SlackError("channel_not_found")
    for user in users:
        found = call.store.one("SELECT deleted FROM users WHERE id = ?", user)
        if found is None:
            raise SlackError("user_not_found")
        if found["deleted"]:
            raise SlackError("user_disabled")
    name = None
    if kind == "mpim":
        marks = ",".join("?" * len(everyone))
        names = [
            r["name"] for r in call.store.all(f"SELECT name FROM users WHERE id IN ({marks}) ORDER BY name", *everyone)
        ]
        name = f"mpdm-{'--'.join(names)}-1"
    return make_channel(call.store, kind, name, call.user, everyone), False
