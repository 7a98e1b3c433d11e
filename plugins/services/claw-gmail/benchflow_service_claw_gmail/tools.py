"""What an agent gets over MCP: the calls a mailbox task needs, with arguments in plain words."""

from __future__ import annotations

import base64
from typing import Any

from benchflow_claw_kit import Tool

from benchflow_service_claw_gmail.delivery import compose

TEXT = {"type": "string"}
ME = {"userId": "me"}
_MAIL = {
    "to": {**TEXT, "description": "addresses, separated by commas"},
    "subject": TEXT,
    "body": TEXT,
    "cc": TEXT,
    "bcc": TEXT,
    "threadId": {**TEXT, "description": "to answer inside a thread"},
    "inReplyTo": {**TEXT, "description": "the Message-ID header of the message answered"},
}


def _raw(arguments: dict[str, Any]) -> dict[str, Any]:
    answered = arguments.get("inReplyTo", "")
    extra = {
        "Cc": arguments.get("cc", ""),
        "Bcc": arguments.get("bcc", ""),
        "In-Reply-To": answered,
        "References": answered,
    }
    raw = compose("", arguments["to"], arguments["subject"], arguments["body"], extra)
    message = {"raw": base64.urlsafe_b64encode(raw).decode()}
    return {**message, **({"threadId": arguments["threadId"]} if arguments.get("threadId") else {})}


def _draft(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"message": _raw(arguments)}


_ID = {"id": TEXT}
_LABELS = {"addLabelIds": {"type": "array", "items": TEXT}, "removeLabelIds": {"type": "array", "items": TEXT}}
_SEARCH = {
    "q": {**TEXT, "description": "as in Gmail's search box: from:ann is:unread newer_than:7d"},
    "maxResults": {"type": "integer"},
    "pageToken": TEXT,
}
_FORMAT = {"type": "string", "enum": ["full", "metadata", "minimal"]}

TOOLS = (
    Tool("search_messages", "Find messages.", "gmail.users.messages.list", _SEARCH, (), ME),
    Tool("get_message", "Read one message.", "gmail.users.messages.get", {**_ID, "format": _FORMAT}, ("id",), ME),
    Tool(
        "get_attachment",
        "Read an attachment (base64url).",
        "gmail.users.messages.attachments.get",
        {"messageId": TEXT, "id": {**TEXT, "description": "attachmentId of the part"}},
        ("messageId", "id"),
        ME,
    ),
    Tool("search_threads", "Find threads.", "gmail.users.threads.list", _SEARCH, (), ME),
    Tool("get_thread", "Read a whole thread.", "gmail.users.threads.get", {**_ID, "format": _FORMAT}, ("id",), ME),
    Tool("send_message", "Send a message.", "gmail.users.messages.send", _MAIL, ("to", "subject", "body"), ME, _raw),
    Tool(
        "create_draft",
        "Keep a message as a draft.",
        "gmail.users.drafts.create",
        _MAIL,
        ("to", "subject", "body"),
        ME,
        _draft,
    ),
    Tool("list_drafts", "List drafts.", "gmail.users.drafts.list", _SEARCH, (), ME),
    Tool("send_draft", "Send a draft.", "gmail.users.drafts.send", _ID, ("id",), ME),
    Tool("delete_draft", "Delete a draft.", "gmail.users.drafts.delete", _ID, ("id",), ME),
    Tool(
        "modify_message", "Change a message's labels.", "gmail.users.messages.modify", {**_ID, **_LABELS}, ("id",), ME
    ),
    Tool("modify_thread", "Change a thread's labels.", "gmail.users.threads.modify", {**_ID, **_LABELS}, ("id",), ME),
    Tool("trash_message", "Move a message to the bin.", "gmail.users.messages.trash", _ID, ("id",), ME),
    Tool("untrash_message", "Take a message out of the bin.", "gmail.users.messages.untrash", _ID, ("id",), ME),
    Tool("list_labels", "List labels.", "gmail.users.labels.list", {}, (), ME),
    Tool("create_label", "Make a label.", "gmail.users.labels.create", {"name": TEXT}, ("name",), ME),
    Tool("delete_label", "Delete a label.", "gmail.users.labels.delete", _ID, ("id",), ME),
    Tool(
        "create_filter",
        "Make a filter for mail to come.",
        "gmail.users.settings.filters.create",
        {"criteria": {"type": "object"}, "action": {"type": "object"}},
        ("criteria", "action"),
        ME,
    ),
    Tool("get_profile", "Whose mailbox this is.", "gmail.users.getProfile", {}, (), ME),
)
