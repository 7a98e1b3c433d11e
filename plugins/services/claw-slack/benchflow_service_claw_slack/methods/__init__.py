"""The methods of the Web API, by family."""

from __future__ import annotations

from benchflow_service_claw_slack.methods import (
    auth,
    bookmarks,
    calls,
    canvases,
    chat,
    conversations,
    dnd,
    files,
    lists,
    membership,
    pins,
    reactions,
    reminders,
    remote_files,
    scheduled,
    search,
    stars,
    streams,
    usergroups,
    users,
    views,
)
from benchflow_service_claw_slack.methods.registry import METHODS, SlackMethod

__all__ = [
    "METHODS",
    "SlackMethod",
    "auth",
    "bookmarks",
    "calls",
    "canvases",
    "chat",
    "conversations",
    "dnd",
    "files",
    "lists",
    "membership",
    "pins",
    "reactions",
    "reminders",
    "remote_files",
    "scheduled",
    "search",
    "stars",
    "streams",
    "usergroups",
    "users",
    "views",
]
