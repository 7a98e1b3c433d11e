"""The tables. Their names and columns are what a task's verifier may read: README.md documents them."""

from __future__ import annotations

SCHEMA = """
CREATE TABLE IF NOT EXISTS users (
  email TEXT PRIMARY KEY, name TEXT NOT NULL, settings TEXT NOT NULL, position INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS calendars (
  id TEXT PRIMARY KEY, owner TEXT NOT NULL, summary TEXT NOT NULL, time_zone TEXT NOT NULL, data TEXT NOT NULL,
  version INTEGER NOT NULL, sync_floor INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS calendar_list (
  user TEXT NOT NULL, calendar_id TEXT NOT NULL, data TEXT NOT NULL, deleted INTEGER NOT NULL DEFAULT 0,
  version INTEGER NOT NULL, PRIMARY KEY (user, calendar_id));
CREATE TABLE IF NOT EXISTS acl (
  calendar_id TEXT NOT NULL, id TEXT NOT NULL, role TEXT NOT NULL, scope_type TEXT NOT NULL, scope_value TEXT NOT NULL,
  deleted INTEGER NOT NULL DEFAULT 0, version INTEGER NOT NULL, PRIMARY KEY (calendar_id, id));
CREATE TABLE IF NOT EXISTS events (
  calendar_id TEXT NOT NULL, id TEXT NOT NULL, status TEXT NOT NULL, summary TEXT NOT NULL, start_ms INTEGER NOT NULL,
  end_ms INTEGER NOT NULL, recurring_event_id TEXT, original_start TEXT, ical_uid TEXT NOT NULL,
  organizer TEXT NOT NULL, sequence INTEGER NOT NULL, created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL,
  version INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY (calendar_id, id));
CREATE INDEX IF NOT EXISTS events_by_master ON events (calendar_id, recurring_event_id);
CREATE INDEX IF NOT EXISTS events_by_uid ON events (ical_uid);
CREATE INDEX IF NOT EXISTS events_by_version ON events (calendar_id, version);
CREATE TABLE IF NOT EXISTS channels (id TEXT PRIMARY KEY, resource_id TEXT NOT NULL, data TEXT NOT NULL);
"""

KINDS = {
    "users": "user",
    "calendars": "calendar",
    "calendar_list": "calendar_list_entry",
    "acl": "acl_rule",
    "events": "event",
    "channels": "channel",
}
