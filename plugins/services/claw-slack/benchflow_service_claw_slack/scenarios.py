"""Worlds: two of our own, and those that a task brings as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from benchflow_claw_kit.seeding import parse_instant
from benchflow_claw_kit.store import Row, Store
from benchflow_claw_kit.worlds import read_world, scenarios

from benchflow_service_claw_slack.methods.files import file_kind
from benchflow_service_claw_slack.methods.opening import make_channel

__all__ = ["SCENARIOS", "load", "prepare"]

_WORLDS = Path(__file__).with_name("worlds")
_LUNCH = ("the noodle place", "Café Luz", "the taco truck", "sandwiches from Bruno's", "leftovers")
_ID = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"
_KEYS = {"team", "users", "channels", "dms", "usergroups", "emoji", "tokens", "strict_tokens", "rate_limits", "now"}
_GAP = 7 * 60


def prepare(store: Store) -> None:
    """A workspace with one person, the app's bot and #general."""
    if store.value("SELECT count(*) FROM team") == 0:
        load(
            store,
            {"users": [{"name": "alex", "real_name": "Alex Morgan", "email": "alex@example.com", "primary": True}]},
        )


def load(store: Store, data: Mapping[str, Any]) -> None:
    _known(data, _KEYS, "scenario")
    team = data.get("team", {})
    store.insert(
        "team",
        id=team.get("id", "T0" + store.new_id("team", 9, _ID)),
        name=team.get("name", "Example"),
        domain=team.get("domain", "example"),
        email_domain=team.get("email_domain", ""),
        strict_tokens=int(bool(data.get("strict_tokens"))),
    )
    names = _users(store, data.get("users", []))
    store.run("UPDATE team SET bot_user = ?, primary_user = ?", names[""], names["*"])
    world = WorkspaceLoader(store, names)
    listed = list(data.get("channels", []))
    if not any(one.get("general") or one["name"] == "general" for one in listed):
        listed.insert(0, {"name": "general", "general": True, "purpose": "Company-wide announcements"})
    made = [(world.channel(one), one) for one in listed]
    for row, one in made:
        world.fill(row, one)
    for one in data.get("dms", []):
        world.direct(one)
    for one in data.get("usergroups", []):
        world.usergroup(one)
    for name, url in data.get("emoji", {}).items():
        store.insert("emoji", name=name, url=url)
    for one in data.get("tokens", []):
        scopes = one.get("scopes")
        text = ",".join(scopes) if isinstance(scopes, list) else scopes
        store.insert(
            "tokens",
            token=one["token"],
            user=world.user(one["user"]),
            scopes=text,
            revoked=int(bool(one.get("revoked"))),
        )
    for name, limit in data.get("rate_limits", {}).items():
        store.insert("rate_limits", method=name, calls=limit["calls"], seconds=limit["seconds"])


def _known(given: Mapping[str, Any], keys: Iterable[str], what: str) -> None:
    unknown = set(given) - set(keys)
    if unknown:
        raise ValueError(f"{what}: unknown {', '.join(sorted(unknown))}; known: {', '.join(sorted(keys))}")


def _users(store: Store, given: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Name to id; `*` is the first person, the empty name the app's bot."""
    names: dict[str, str] = {}
    profile = ("title", "phone", "pronouns", "display_name", "status_text", "status_emoji", "fields")
    facts = {
        "id",
        "name",
        "real_name",
        "email",
        "tz",
        "admin",
        "owner",
        "bot",
        "deleted",
        "primary",
        "app",
        "presence",
        *profile,
    }
    listed = list(given)
    if not any(one.get("app") for one in listed):
        listed.append({"name": "clawbot", "real_name": "Claw Bot", "bot": True, "app": True})
    for one in listed:
        _known(one, facts, f"user {one.get('name')}")
        user = one.get("id") or "U0" + store.new_id("user", 9, _ID)
        bot = bool(one.get("bot") or one.get("app"))
        store.insert(
            "users",
            id=user,
            name=one["name"],
            real_name=one.get("real_name", one["name"]),
            email=one.get("email"),
            tz=one.get("tz", "Etc/UTC"),
            is_admin=int(bool(one.get("admin") or one.get("owner"))),
            is_owner=int(bool(one.get("owner"))),
            is_bot=int(bot),
            bot_id="B0" + store.new_id("bot", 9, _ID) if bot else None,
            deleted=int(bool(one.get("deleted"))),
            presence=one.get("presence", "active"),
            profile={name: one[name] for name in profile if name in one},
            updated=store.now_ms() // 1000,
        )
        names[one["name"]] = user
        if one.get("app"):
            names[""] = user
        if one.get("primary") or (not bot and "*" not in names):
            names["*"] = user
    names.setdefault("*", names[""])
    return names


class WorkspaceLoader:
    def __init__(self, store: Store, names: Mapping[str, str]) -> None:
        self.store = store
        self.names = names

    def user(self, name: str) -> str:
        if name in self.names:
            return self.names[name]
        if name in self.names.values():
            return name
        raise ValueError(f"no user {name!r}; known: {', '.join(sorted(n for n in self.names if n not in ('', '*')))}")

    def channel(self, one: Mapping[str, Any]) -> Row:
        keys = {
            "id",
            "name",
            "private",
            "topic",
            "purpose",
            "members",
            "creator",
            "archived",
            "general",
            "messages",
            "bookmarks",
            "unread",
        }
        _known(one, keys, f"channel {one.get('name')}")
        creator = self.user(one["creator"]) if "creator" in one else self.names["*"]
        everyone = [user for name, user in self.names.items() if name != "*"]
        members = [self.user(name) for name in one["members"]] if "members" in one else everyone
        kind = "group" if one.get("private") else "channel"
        row = make_channel(self.store, kind, one["name"], creator, members, one.get("id"))
        self.store.update(
            "channels",
            {"id": row["id"]},
            topic=one.get("topic", ""),
            topic_creator=creator if one.get("topic") else "",
            topic_set=row["created"] if one.get("topic") else 0,
            purpose=one.get("purpose", ""),
            purpose_creator=creator if one.get("purpose") else "",
            purpose_set=row["created"] if one.get("purpose") else 0,
            is_archived=int(bool(one.get("archived"))),
            is_general=int(bool(one.get("general") or one["name"] == "general")),
        )
        return row

    def fill(self, row: Row, one: Mapping[str, Any]) -> None:
        self.say(row, one.get("messages", []))
        self._unread(row["id"], int(one.get("unread", 0)))
        for number, mark in enumerate(one.get("bookmarks", [])):
            self.store.insert(
                "bookmarks",
                id="Bk" + self.store.new_id("bookmark", 9, _ID),
                channel=row["id"],
                title=mark["title"],
                link=mark["link"],
                emoji=mark.get("emoji"),
                type="link",
                rank=f"{number:04d}",
                created=row["created"],
                updated=0,
                updated_by=row["creator"],
            )

    def direct(self, one: Mapping[str, Any]) -> None:
        users = sorted({self.user(name) for name in one["users"]})
        kind = "im" if len(users) <= 2 else "mpim"
        named = sorted(name for name, user in self.names.items() if user in users and name not in ("", "*"))
        name = f"mpdm-{'--'.join(named)}-1" if kind == "mpim" else None
        row = make_channel(self.store, kind, name, users[0], users, one.get("id"))
        self.fill(row, {k: v for k, v in one.items() if k in ("messages", "unread")})

    def usergroup(self, one: Mapping[str, Any]) -> None:
        now = self.store.now_ms() // 1000
        self.store.insert(
            "usergroups",
            id=one.get("id", "S0" + self.store.new_id("usergroup", 9, _ID)),
            handle=one["handle"],
            name=one.get("name", one["handle"]),
            description=one.get("description", ""),
            created_by=self.names["*"],
            updated_by=self.names["*"],
            date_create=now,
            date_update=now,
            users=[self.user(name) for name in one.get("users", [])],
        )

    # -- messages

    def say(self, channel: Row, messages: list[Mapping[str, Any]]) -> None:
        """`at` sets a message's time; without, they are some minutes apart and end at the world's beginning."""
        total = sum(1 + len(one.get("thread", [])) for one in messages)
        clock = self.store.now_ms() // 1000 - total * _GAP - _GAP
        for one in messages:
            ts, clock = self._message(channel, one, clock, None)
            for reply in one.get("thread", []):
                _, clock = self._message(channel, reply, clock, ts)
            if one.get("thread"):
                self.store.run("UPDATE messages SET thread_ts = ts WHERE channel = ? AND ts = ?", channel["id"], ts)

    def _message(self, channel: Row, one: Mapping[str, Any], clock: int, thread: str | None) -> tuple[str, int]:
        keys = {
            "user",
            "text",
            "at",
            "ts",
            "thread",
            "reactions",
            "pinned",
            "file",
            "blocks",
            "attachments",
            "subtype",
            "edited",
        }
        _known(one, keys, f"message in {channel['name']}")
        at = parse_instant(one["at"]) // 1000 if "at" in one else clock
        ts = one.get("ts") or f"{at:010d}.{self.store.count('ts') * 100 % 1_000_000 + 9:06d}"
        user = self.user(one["user"])
        bot = self.store.value("SELECT bot_id FROM users WHERE id = ?", user)
        text = self._linked(one.get("text", ""))
        columns = {name: one[name] for name in ("blocks", "attachments", "subtype") if name in one}
        self.store.insert(
            "messages", channel=channel["id"], ts=ts, user=user, text=text, thread_ts=thread, bot_id=bot, **columns
        )
        for name, people in one.get("reactions", {}).items():
            for person in people:
                self.store.insert("reactions", channel=channel["id"], ts=ts, name=name, user=self.user(person))
        if one.get("pinned"):
            self.store.insert("pins", channel=channel["id"], ts=ts, user=user, created=at)
        if "file" in one:
            self._file(channel["id"], ts, user, at, one["file"])
        return ts, max(clock, at) + _GAP

    def _linked(self, text: str) -> str:
        def mention(found: re.Match[str]) -> str:
            return f"<@{self.names[found[1]]}>" if found[1] in self.names else found[0]

        def channel(found: re.Match[str]) -> str:
            row = self.store.one("SELECT id, name FROM channels WHERE name = ? AND kind = 'channel'", found[1])
            return f"<#{row['id']}|{row['name']}>" if row else found[0]

        text = re.sub(r"(?<![\w<])@(here|channel|everyone)\b", r"<!\1>", text)
        return re.sub(r"(?<![\w<&])#([\w-]+)", channel, re.sub(r"(?<![\w<])@([\w.-]*\w)", mention, text))

    def _file(self, channel: str, ts: str, user: str, at: int, one: Mapping[str, Any]) -> None:
        mime, kind = file_kind(one["name"])
        content = one.get("content", "").encode()
        file = one.get("id", "F0" + self.store.new_id("file", 9, _ID))
        facts = {
            "id": file,
            "name": one["name"],
            "title": one.get("title", one["name"]),
            "mimetype": mime,
            "filetype": kind,
        }
        self.store.insert("files", size=len(content), user=user, created=at, content=content, **facts)
        self.store.insert("file_shares", file=file, channel=channel, ts=ts)
        self.store.update("messages", {"channel": channel, "ts": ts}, files=[file])

    def _unread(self, channel: str, count: int) -> None:
        """Everybody has read everything but the last `count` messages."""
        rows = self.store.all(
            "SELECT ts FROM messages WHERE channel = ? AND (thread_ts IS NULL OR thread_ts = ts) ORDER BY ts DESC",
            channel,
        )
        if rows:
            read = rows[count]["ts"] if count < len(rows) else "0000000000.000000"
            last = self.store.value("SELECT max(ts) FROM messages WHERE channel = ?", channel)
            self.store.update("members", {"channel": channel}, last_read=read if count else last)


def office(random: Random) -> Mapping[str, Any]:
    """A small software company on an ordinary Monday."""
    return read_world(
        _WORLDS / "office.json",
        ticket=random.randint(300, 999),
        room=random.choice("ABCD"),
        place=random.choice(_LUNCH),
        count=random.randint(12, 60),
        day=random.randint(8, 24),
    )


def incident(random: Random) -> Mapping[str, Any]:
    """Payments fail since this morning; #inc-payments is where it is handled."""
    return read_world(
        _WORLDS / "incident.json",
        rate=random.randint(18, 64),
        ticket=random.randint(1000, 1999),
        host=random.randint(2, 9),
        tickets=random.randint(9, 40),
    )


SCENARIOS = scenarios(load, office, incident)
