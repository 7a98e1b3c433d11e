"""The service: its parts put together."""

from __future__ import annotations

from benchflow_claw_kit import Service, Store, View

from benchflow_service_claw_gcal import calendars, changes, events, others, sharing
from benchflow_service_claw_gcal.access import create_user
from benchflow_service_claw_gcal.contract import api
from benchflow_service_claw_gcal.scenarios import SCENARIOS, load
from benchflow_service_claw_gcal.schema import KINDS, SCHEMA
from benchflow_service_claw_gcal.tools import TOOLS

__all__ = ["METHODS", "SERVICE"]

METHODS = (calendars, changes, events, others, sharing)
"""Importing them is what registers their methods."""


def prepare(store: Store) -> None:
    if store.value("SELECT count(*) FROM users") == 0:
        create_user(store, "alex@example.com", "Alex Morgan")


SERVICE = Service(
    "gcal",
    "claw-gcal",
    9003,
    "mock Google Calendar",
    SCHEMA,
    api,
    dialect="legacy",
    scenarios=SCENARIOS,
    load=load,
    prepare=prepare,
    tools=TOOLS,
    views=(
        View("Users", "SELECT email, name FROM users ORDER BY position"),
        View("Calendars", "SELECT id, summary, owner, time_zone FROM calendars"),
        View("Sharing", "SELECT calendar_id, id, role FROM acl WHERE deleted = 0"),
        View(
            "Events",
            "SELECT calendar_id, id, status, summary, datetime(start_ms / 1000, 'unixepoch') AS start_utc, "
            "datetime(end_ms / 1000, 'unixepoch') AS end_utc, organizer, data FROM events ORDER BY start_ms",
        ),
    ),
    kinds=KINDS,
    batch_limit=1000,
    max_body=4 * 1024 * 1024,
)
