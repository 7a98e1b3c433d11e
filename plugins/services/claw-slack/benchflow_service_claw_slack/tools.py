"""What an agent is offered over MCP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchflow_claw_kit.api import Api, Call
from benchflow_claw_kit.service import Tool

__all__ = ["TOOLS", "routes"]

_TEXT: Mapping[str, Any] = {"type": "string"}
_NUMBER: Mapping[str, Any] = {"type": "integer"}


def _tool(name: str, description: str, method: str, required: tuple[str, ...], **properties: Mapping[str, Any]) -> Tool:
    return Tool(name, description, method, {**dict.fromkeys(required, _TEXT), **properties}, required)


TOOLS = (
    _tool(
        "list_channels",
        "Channels of the workspace.",
        "conversations.list",
        (),
        types=_TEXT,
        limit=_NUMBER,
        cursor=_TEXT,
    ),
    _tool(
        "read_channel",
        "The latest messages of a channel.",
        "conversations.history",
        ("channel",),
        limit=_NUMBER,
        cursor=_TEXT,
    ),
    _tool("read_thread", "A message and its replies.", "conversations.replies", ("channel", "ts"), limit=_NUMBER),
    _tool(
        "post_message",
        "Say something; thread_ts answers in a thread.",
        "chat.postMessage",
        ("channel", "text"),
        thread_ts=_TEXT,
    ),
    _tool("update_message", "Change an own message.", "chat.update", ("channel", "ts", "text")),
    _tool("delete_message", "Take an own message back.", "chat.delete", ("channel", "ts")),
    _tool("add_reaction", "React with an emoji's name.", "reactions.add", ("channel", "timestamp", "name")),
    _tool("list_users", "People and bots.", "users.list", (), limit=_NUMBER, cursor=_TEXT),
    _tool("find_user", "A person by e-mail address.", "users.lookupByEmail", ("email",)),
    _tool(
        "search_messages",
        "Search with Slack's operators (from:, in:, has: …).",
        "search.messages",
        ("query",),
        count=_NUMBER,
    ),
    _tool("create_channel", "Make a channel.", "conversations.create", ("name",), is_private={"type": "boolean"}),
    _tool("invite_to_channel", "Add people (ids, separated by commas).", "conversations.invite", ("channel", "users")),
)


def routes(names: list[str]) -> Api:
    """For the tools alone: where each method is."""
    api = Api()

    def unused(call: Call) -> None:
        raise NotImplementedError

    for name in names:
        api.route(name, "POST", f"/api/{name}")(unused)
    return api
