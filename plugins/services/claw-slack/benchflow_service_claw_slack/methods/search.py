"""search.*: what the caller may see, by words and operators."""

from __future__ import annotations

import json
import re
from typing import Any

from benchflow_claw_kit.store import Row

from benchflow_service_claw_slack import search_query
from benchflow_service_claw_slack.call import SlackCall, SlackError
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.channels import display_name, is_member
from benchflow_service_claw_slack.objects.files import may_see, show_file
from benchflow_service_claw_slack.objects.messages import permalink
from benchflow_service_claw_slack.search_query import MessageQuery, Term, parse

__all__: list[str] = []

Answer = dict[str, Any]
_LINK = re.compile(r"https?://\S+")


def _query(call: SlackCall) -> MessageQuery:
    if not call.text("query").strip():
        raise SlackError("no_query")
    return parse(call.text("query"))


def _user_ids(call: SlackCall, value: str) -> set[str]:
    """`me`, `@name`, `<@U…>`, an id, or a display name."""
    value = value.strip("<>").removeprefix("@").lower()
    if value == "me":
        return {call.user}
    rows = call.store.all("SELECT id, name, real_name, profile FROM users")
    return {
        row["id"]
        for row in rows
        if value in (row["id"].lower(), row["name"].lower(), row["real_name"].lower())
        or value == json.loads(row["profile"]).get("display_name", "").lower()
    }


def _channel_ids(call: SlackCall, value: str) -> set[str]:
    name = re.sub(r"\|.*", "", value.strip("<>")).removeprefix("#").lower()
    rows = call.store.all("SELECT id FROM channels WHERE lower(id) = ? OR name = ?", name, name)
    found = {row["id"] for row in rows}
    people = _user_ids(call, value)
    if people and not found:
        for row in call.store.all("SELECT id FROM channels WHERE kind = 'im'"):
            if all(is_member(call.store, row["id"], user) for user in {*people, call.user}):
                found.add(row["id"])
    return found


class Matcher:
    """One message against the operators; what names people and channels is looked up once."""

    def __init__(self, call: SlackCall, query: MessageQuery) -> None:
        self.call = call
        self.query = query
        self.users = {t: _user_ids(call, t.value) for t in query.operators if t.name in ("from", "to", "with")}
        self.channels = {t: _channel_ids(call, t.value) for t in query.operators if t.name == "in"}

    def message(self, row: Row) -> bool:
        text = row["text"] + _attached(row)
        for term in self.query.terms:
            hit = term.matches_text(text) if term.name in ("word", "phrase") else self._operator(term, row)
            if hit == term.negated:
                return False
        return True

    def _operator(self, term: Term, row: Row) -> bool:
        name = term.name
        if name == "from":
            return row["user"] in self.users[term]
        if name == "in":
            return row["channel"] in self.channels[term]
        if name == "to":
            return any(f"<@{user}>" in row["text"] or self._direct(row, user) for user in self.users[term])
        if name == "with":
            return any(self._with(row, user) for user in self.users[term])
        if name in ("before", "after", "on", "during"):
            return in_span(self.call, term, float(row["ts"]))
        if name in ("has", "hasmy"):
            return self._has(term, row)
        if name == "is":
            return self._is(term.value.lower(), row)
        return True

    def _direct(self, row: Row, user: str) -> bool:
        kind = self.call.store.value("SELECT kind FROM channels WHERE id = ?", row["channel"])
        return kind == "im" and row["user"] != user and is_member(self.call.store, row["channel"], user)

    def _with(self, row: Row, user: str) -> bool:
        """Threads and direct messages that somebody takes part in."""
        kind = self.call.store.value("SELECT kind FROM channels WHERE id = ?", row["channel"])
        if kind in ("im", "mpim"):
            return is_member(self.call.store, row["channel"], user)
        sql = "SELECT 1 FROM messages WHERE channel = ? AND user = ? AND (ts = ? OR thread_ts = ?)"
        thread = row["thread_ts"] or row["ts"]
        return self.call.store.one(sql, row["channel"], user, thread, thread) is not None

    def _has(self, term: Term, row: Row) -> bool:
        value, key = term.value.lower(), (row["channel"], row["ts"])
        mine = " AND user = ?" if term.name == "hasmy" else ""
        extra = (self.call.user,) if mine else ()
        if value.startswith(":"):
            sql = f"SELECT 1 FROM reactions WHERE channel = ? AND ts = ? AND name = ?{mine}"
            return self.call.store.one(sql, *key, value.strip(":"), *extra) is not None
        if value == "link":
            return _LINK.search(row["text"]) is not None
        if value == "reaction":
            sql = f"SELECT 1 FROM reactions WHERE channel = ? AND ts = ?{mine}"
            return self.call.store.one(sql, *key, *extra) is not None
        if value == "pin":
            return self.call.store.one("SELECT 1 FROM pins WHERE channel = ? AND ts = ?", *key) is not None
        if value == "star":
            return self._is("saved", row)
        if value == "file":
            return bool(row["files"])
        return False

    def _is(self, value: str, row: Row) -> bool:
        if value == "thread":
            return bool(row["thread_ts"])
        if value in ("saved", "starred"):
            sql = "SELECT 1 FROM stars WHERE user = ? AND channel = ? AND ts = ?"
            return self.call.store.one(sql, self.call.user, row["channel"], row["ts"]) is not None
        kind = self.call.store.value("SELECT kind FROM channels WHERE id = ?", row["channel"])
        return value == "dm" and kind in ("im", "mpim")


def in_span(call: SlackCall, term: Term, at: float) -> bool:
    span = search_query.span(term.value, call.now)
    if span is None:
        return True
    start, end = span
    return {"before": at < start, "after": at >= end}.get(term.name, start <= at < end)


def _attached(row: Row) -> str:
    parts = []
    for one in json.loads(row["attachments"] or "[]"):
        parts += [str(one[name]) for name in ("title", "text", "pretext") if one.get(name)]
    return " ".join(["", *parts])


def _visible(call: SlackCall) -> list[Row]:
    return call.store.all(
        "SELECT m.* FROM messages m JOIN channels c ON c.id = m.channel WHERE (c.kind = 'channel' OR EXISTS"
        " (SELECT 1 FROM members x WHERE x.channel = c.id AND x.user = ?))"
        " AND (m.subtype IS NULL OR m.subtype IN ('bot_message', 'thread_broadcast', 'me_message', 'file_share'))",
        call.user,
    )


def _paged(call: SlackCall, items: list[Any]) -> tuple[list[Any], Answer]:
    count = min(call.number("count", 20, 1, 1000), 100)
    page = call.number("page", 1, 1, 100)
    pages = -(-len(items) // count)
    start = (page - 1) * count
    found = items[start : start + count]
    pagination = {
        "total_count": len(items),
        "page": page,
        "per_page": count,
        "page_count": pages,
        "first": start + 1 if found else 0,
        "last": start + len(found),
    }
    paging = {"count": count, "total": len(items), "page": page, "pages": pages}
    return found, {"total": len(items), "pagination": pagination, "paging": paging}


def _sorted(call: SlackCall, rows: list[Row], score: Any, when: Any) -> list[Row]:
    if call.text("sort", "score") not in ("score", "timestamp") or call.text("sort_dir", "desc") not in ("asc", "desc"):
        raise SlackError("invalid_arguments")
    ascending = call.text("sort_dir") == "asc"
    if call.text("sort") == "timestamp":
        return sorted(rows, key=when, reverse=not ascending)
    return sorted(sorted(rows, key=when, reverse=True), key=score, reverse=not ascending)


def _messages(call: SlackCall, query: MessageQuery) -> Answer:
    matcher = Matcher(call, query)
    rows = [row for row in _visible(call) if matcher.message(row)]

    def score(row: Row) -> int:
        return sum(row["text"].lower().count(t.value.lower().rstrip("*")) for t in query.words if not t.negated)

    page, facts = _paged(call, _sorted(call, rows, score, lambda row: row["ts"]))
    return {**facts, "matches": [_match(call, row, query) for row in page]}


def _match(call: SlackCall, row: Row, query: MessageQuery) -> Answer:
    channel = call.store.one("SELECT * FROM channels WHERE id = ?", row["channel"])
    assert channel is not None
    user = call.store.one("SELECT name FROM users WHERE id = ?", row["user"] or "")
    text = row["text"]
    if call.flag("highlight"):
        for term in query.words:
            if not term.negated:
                text = re.sub(f"({re.escape(term.value.rstrip('*'))})", "\ue000\\1\ue001", text, flags=re.IGNORECASE)
    shown = {
        "iid": f"{row['channel']}-{row['ts']}",
        "team": call.team["id"],
        "score": 0,
        "channel": {
            "id": channel["id"],
            "name": display_name(call, channel),
            "is_channel": channel["kind"] == "channel",
            "is_group": channel["kind"] == "group",
            "is_im": channel["kind"] == "im",
            "is_mpim": channel["kind"] == "mpim",
            "is_private": channel["kind"] != "channel",
            "is_shared": False,
            "is_org_shared": False,
            "is_ext_shared": False,
            "is_pending_ext_shared": False,
            "pending_shared": [],
        },
        "type": "im" if channel["kind"] == "im" else "message",
        "user": row["user"],
        "username": row["username"] or (user["name"] if user else ""),
        "ts": row["ts"],
        "text": text,
        "permalink": permalink(call, row),
    }
    for name in ("blocks", "attachments"):
        if row[name]:
            shown[name] = json.loads(row[name])
    return shown


def _files(call: SlackCall, query: MessageQuery) -> Answer:
    rows = [row for row in call.store.all("SELECT * FROM files WHERE ready = 1") if may_see(call, row)]
    rows = [row for row in rows if all(_file_matches(call, term, row) != term.negated for term in query.terms)]
    page, facts = _paged(call, _sorted(call, rows, lambda row: 0, lambda row: (row["created"], row["id"])))
    return {**facts, "matches": [show_file(call, row) for row in page]}


def _file_matches(call: SlackCall, term: Term, row: Row) -> bool:
    if term.name in ("word", "phrase"):
        body = (
            bytes(row["content"] or b"")[:100_000].decode("utf-8", "replace") if row["mimetype"] == "text/plain" else ""
        )
        return term.matches_text(f"{row['name']} {row['title']} {body}") or term.value.lower() in row["name"].lower()
    if term.name == "from":
        return row["user"] in _user_ids(call, term.value)
    if term.name == "in":
        shared = call.store.all("SELECT channel FROM file_shares WHERE file = ?", row["id"])
        return bool({one["channel"] for one in shared} & _channel_ids(call, term.value))
    if term.name == "type":
        return row["filetype"] in (term.value.lower(), term.value.lower().removesuffix("s"))
    if term.name in ("before", "after", "on", "during"):
        return in_span(call, term, row["created"])
    return True


@method("search.messages", "search:read", people_only=True)
def messages(call: SlackCall) -> Answer:
    query = _query(call)
    return {"query": call.text("query"), "messages": _messages(call, query)}


@method("search.files", "search:read", people_only=True)
def files(call: SlackCall) -> Answer:
    query = _query(call)
    return {"query": call.text("query"), "files": _files(call, query)}


@method("search.all", "search:read", people_only=True)
def everything(call: SlackCall) -> Answer:
    query = _query(call)
    posts = {"matches": [], "total": 0, "paging": {"count": 0, "total": 0, "page": 1, "pages": 0}}
    return {
        "query": call.text("query"),
        "messages": _messages(call, query),
        "files": _files(call, query),
        "posts": posts,
    }
