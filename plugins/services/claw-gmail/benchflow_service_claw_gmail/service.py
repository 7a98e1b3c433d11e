"""The service: its parts put together."""

from __future__ import annotations

from benchflow_claw_kit import Service, Store, View

from benchflow_service_claw_gmail import drafts, labels, messages, settings, threads
from benchflow_service_claw_gmail.contract import api
from benchflow_service_claw_gmail.mailbox import create_user
from benchflow_service_claw_gmail.scenarios import SCENARIOS, load
from benchflow_service_claw_gmail.schema import KINDS, SCHEMA
from benchflow_service_claw_gmail.tools import TOOLS

__all__ = ["METHODS", "SERVICE"]

METHODS = (drafts, labels, messages, settings, threads)
"""Importing them is what registers their methods."""
DEFAULT_USER = "alex@example.com"
MAX_BODY = 36700160 * 4 // 3 + 65536
"""A message as large as `send` takes, in base64url inside JSON."""


def prepare(store: Store) -> None:
    if store.value("SELECT count(*) FROM users") == 0:
        create_user(store, DEFAULT_USER, "Alex Morgan")


SERVICE = Service(
    "gmail",
    "claw-gmail",
    9001,
    "mock Gmail",
    SCHEMA,
    api,
    scenarios=SCENARIOS,
    load=load,
    prepare=prepare,
    tools=TOOLS,
    views=(
        View("Users", "SELECT email, name, history_id FROM users ORDER BY position"),
        View(
            "Messages",
            "SELECT user, id, thread_id, datetime(internal_date / 1000, 'unixepoch') AS date, labels, sender, "
            "recipients, subject, snippet, filenames FROM messages ORDER BY internal_date DESC",
        ),
        View("Drafts", "SELECT * FROM drafts"),
        View("Labels", "SELECT user, id, name FROM labels WHERE type = 'user'"),
        View("Filters", "SELECT user, id, data FROM filters"),
        View("Settings", "SELECT user, name, data FROM settings"),
    ),
    kinds=KINDS,
    blobs=frozenset({"messages.raw"}),
    max_body=MAX_BODY,
)
