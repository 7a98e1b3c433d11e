"""Slack's Web API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.http import Request, Response, json_response
from benchflow_claw_kit.service import Service, View

from benchflow_service_claw_slack.answer import handle
from benchflow_service_claw_slack.methods import METHODS
from benchflow_service_claw_slack.scenarios import SCENARIOS, load, prepare
from benchflow_service_claw_slack.schema import SCHEMA, TABLES
from benchflow_service_claw_slack.tools import TOOLS, routes

__all__ = ["SERVICE"]

_WORDS = {413: "request_entity_too_large", 400: "invalid_form_data", 404: "unknown_method"}


@dataclass
class SlackService(Service):
    def render_error(self, error: ApiError, request: Request) -> Response:
        """What the kit itself refuses, in Slack's shape."""
        body: dict[str, Any] = {"ok": False, "error": _WORDS.get(error.status, "internal_error")}
        return json_response(body, error.status if error.status >= 500 or error.status == 413 else 200, pretty=False)


SERVICE = SlackService(
    "slack",
    "claw-slack",
    9002,
    "mock Slack Web API",
    SCHEMA,
    routes(list(METHODS)),
    scenarios=SCENARIOS,
    load=load,
    prepare=prepare,
    tools=TOOLS,
    tables=TABLES,
    handle=handle,
    kinds={
        "messages": "message",
        "channels": "channel",
        "users": "user",
        "members": "member",
        "reactions": "reaction",
        "pins": "pin",
        "bookmarks": "bookmark",
        "stars": "star",
        "reminders": "reminder",
        "usergroups": "usergroup",
        "files": "file",
        "file_shares": "file_share",
        "scheduled_messages": "scheduled_message",
        "ephemeral_messages": "ephemeral_message",
        "tokens": "token",
        "views": "view",
        "rate_limits": "rate_limit",
        "canvases": "canvas",
        "lists": "list",
        "list_items": "list_item",
        "list_downloads": "list_download",
        "shared_access": "access",
        "streams": "stream",
        "remote_files": "remote_file",
        "calls": "call",
    },
    blobs=frozenset({"files.content"}),
    views=(
        View(
            "Channels", "SELECT id, kind, name, is_archived, topic, purpose, creator FROM channels ORDER BY kind, name"
        ),
        View(
            "Messages",
            "SELECT coalesce(c.name, c.id) AS channel, m.ts, coalesce(u.name, m.user) AS user, m.text, m.thread_ts,"
            " m.subtype FROM messages m JOIN channels c ON c.id = m.channel LEFT JOIN users u ON u.id = m.user"
            " ORDER BY m.ts DESC",
        ),
        View("Users", "SELECT id, name, real_name, email, is_bot, is_admin, deleted FROM users ORDER BY id"),
        View("Reactions", "SELECT channel, ts, file, name, user FROM reactions ORDER BY seq"),
        View("Scheduled", "SELECT id, channel, post_at, user, message FROM scheduled_messages ORDER BY post_at"),
        View("Canvases", "SELECT id, title, channel, user, sections FROM canvases ORDER BY id"),
        View(
            "List items", "SELECT l.name, i.id, i.cells FROM list_items i JOIN lists l ON l.id = i.list ORDER BY i.seq"
        ),
        View("Files", "SELECT id, name, title, mimetype, size, user FROM files ORDER BY id"),
    ),
)
