"""The tables. Ids are Slack's (T, U, B, C, G, D, F …), `ts` is the message's time and its key within a channel."""

from __future__ import annotations

__all__ = ["SCHEMA", "TABLES"]

SCHEMA = """
CREATE TABLE IF NOT EXISTS team (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, domain TEXT NOT NULL, email_domain TEXT NOT NULL DEFAULT '',
  app_id TEXT NOT NULL DEFAULT 'A0CLAW0APP', bot_user TEXT, primary_user TEXT,
  strict_tokens INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS tokens (
  token TEXT PRIMARY KEY, user TEXT NOT NULL, scopes TEXT, revoked INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS users (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, real_name TEXT NOT NULL, email TEXT, tz TEXT NOT NULL DEFAULT 'Etc/UTC',
  is_admin INTEGER NOT NULL DEFAULT 0, is_owner INTEGER NOT NULL DEFAULT 0, is_bot INTEGER NOT NULL DEFAULT 0,
  bot_id TEXT, deleted INTEGER NOT NULL DEFAULT 0, presence TEXT NOT NULL DEFAULT 'active',
  manual_presence TEXT NOT NULL DEFAULT 'auto', profile TEXT NOT NULL DEFAULT '{}', updated INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX IF NOT EXISTS users_email ON users (lower(email)) WHERE email IS NOT NULL;
CREATE TABLE IF NOT EXISTS channels (
  id TEXT PRIMARY KEY, name TEXT, kind TEXT NOT NULL, creator TEXT NOT NULL, created INTEGER NOT NULL,
  is_archived INTEGER NOT NULL DEFAULT 0, is_general INTEGER NOT NULL DEFAULT 0,
  topic TEXT NOT NULL DEFAULT '', topic_creator TEXT NOT NULL DEFAULT '', topic_set INTEGER NOT NULL DEFAULT 0,
  purpose TEXT NOT NULL DEFAULT '', purpose_creator TEXT NOT NULL DEFAULT '', purpose_set INTEGER NOT NULL DEFAULT 0,
  previous_names TEXT NOT NULL DEFAULT '[]', updated INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX IF NOT EXISTS channels_name ON channels (name) WHERE kind IN ('channel', 'group');
CREATE TABLE IF NOT EXISTS members (
  channel TEXT NOT NULL REFERENCES channels, user TEXT NOT NULL REFERENCES users, joined INTEGER NOT NULL DEFAULT 0,
  last_read TEXT NOT NULL DEFAULT '0000000000.000000', is_open INTEGER NOT NULL DEFAULT 1, PRIMARY KEY (channel, user));
CREATE TABLE IF NOT EXISTS messages (
  channel TEXT NOT NULL REFERENCES channels, ts TEXT NOT NULL, user TEXT, text TEXT NOT NULL DEFAULT '', thread_ts TEXT,
  subtype TEXT, bot_id TEXT, username TEXT, icons TEXT, blocks TEXT, attachments TEXT, metadata TEXT, files TEXT,
  edited_user TEXT, edited_ts TEXT, broadcast INTEGER NOT NULL DEFAULT 0, extra TEXT, PRIMARY KEY (channel, ts));
CREATE INDEX IF NOT EXISTS messages_thread ON messages (channel, thread_ts);
CREATE TABLE IF NOT EXISTS ephemeral_messages (
  channel TEXT NOT NULL, ts TEXT NOT NULL, user TEXT NOT NULL, sender TEXT NOT NULL, text TEXT NOT NULL, blocks TEXT,
  PRIMARY KEY (channel, ts));
CREATE TABLE IF NOT EXISTS scheduled_messages (
  id TEXT PRIMARY KEY, channel TEXT NOT NULL REFERENCES channels, post_at INTEGER NOT NULL, user TEXT NOT NULL,
  created INTEGER NOT NULL, message TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS reactions (
  seq INTEGER PRIMARY KEY, channel TEXT NOT NULL DEFAULT '', ts TEXT NOT NULL DEFAULT '', file TEXT NOT NULL DEFAULT '',
  name TEXT NOT NULL, user TEXT NOT NULL, UNIQUE (channel, ts, file, name, user));
CREATE TABLE IF NOT EXISTS pins (
  channel TEXT NOT NULL, ts TEXT NOT NULL, user TEXT NOT NULL, created INTEGER NOT NULL, PRIMARY KEY (channel, ts));
CREATE TABLE IF NOT EXISTS bookmarks (
  id TEXT PRIMARY KEY, channel TEXT NOT NULL REFERENCES channels, title TEXT NOT NULL, link TEXT, emoji TEXT,
  type TEXT NOT NULL, rank TEXT NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL, updated_by TEXT);
CREATE TABLE IF NOT EXISTS stars (
  user TEXT NOT NULL, channel TEXT NOT NULL DEFAULT '', ts TEXT NOT NULL DEFAULT '', file TEXT NOT NULL DEFAULT '',
  created INTEGER NOT NULL, PRIMARY KEY (user, channel, ts, file));
CREATE TABLE IF NOT EXISTS reminders (
  id TEXT PRIMARY KEY, creator TEXT NOT NULL, user TEXT NOT NULL, text TEXT NOT NULL, time INTEGER NOT NULL,
  complete_ts INTEGER NOT NULL DEFAULT 0, recurring INTEGER NOT NULL DEFAULT 0, recurrence TEXT);
CREATE TABLE IF NOT EXISTS usergroups (
  id TEXT PRIMARY KEY, handle TEXT NOT NULL, name TEXT NOT NULL, description TEXT NOT NULL DEFAULT '',
  created_by TEXT NOT NULL, updated_by TEXT NOT NULL, date_create INTEGER NOT NULL, date_update INTEGER NOT NULL,
  date_delete INTEGER NOT NULL DEFAULT 0, channels TEXT NOT NULL DEFAULT '[]', users TEXT NOT NULL DEFAULT '[]');
CREATE TABLE IF NOT EXISTS files (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, title TEXT NOT NULL, mimetype TEXT NOT NULL, filetype TEXT NOT NULL,
  size INTEGER NOT NULL, user TEXT NOT NULL, created INTEGER NOT NULL, content BLOB, public_url TEXT, alt_text TEXT,
  ready INTEGER NOT NULL DEFAULT 1);
CREATE TABLE IF NOT EXISTS file_shares (
  file TEXT NOT NULL REFERENCES files ON DELETE CASCADE, channel TEXT NOT NULL, ts TEXT NOT NULL,
  PRIMARY KEY (file, channel, ts));
CREATE TABLE IF NOT EXISTS dnd (
  user TEXT PRIMARY KEY, enabled INTEGER NOT NULL DEFAULT 0, next_start INTEGER NOT NULL DEFAULT 1,
  next_end INTEGER NOT NULL DEFAULT 1, snooze_until INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS emoji (name TEXT PRIMARY KEY, url TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS views (
  id TEXT PRIMARY KEY, user TEXT NOT NULL, type TEXT NOT NULL, view TEXT NOT NULL, hash TEXT NOT NULL, external_id TEXT,
  parent TEXT);
CREATE TABLE IF NOT EXISTS canvases (
  id TEXT PRIMARY KEY, title TEXT NOT NULL, user TEXT NOT NULL, channel TEXT, created INTEGER NOT NULL,
  updated INTEGER NOT NULL, sections TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS lists (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, user TEXT NOT NULL, description TEXT NOT NULL, columns TEXT NOT NULL,
  todo_mode INTEGER NOT NULL DEFAULT 0, created INTEGER NOT NULL, updated INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS list_items (
  id TEXT PRIMARY KEY, list TEXT NOT NULL REFERENCES lists ON DELETE CASCADE, seq INTEGER NOT NULL, parent TEXT,
  user TEXT NOT NULL, updated_by TEXT NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL,
  cells TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS list_downloads (
  id TEXT PRIMARY KEY, list TEXT NOT NULL, user TEXT NOT NULL, content TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS shared_access (
  item TEXT NOT NULL, target TEXT NOT NULL, level TEXT NOT NULL, PRIMARY KEY (item, target));
CREATE TABLE IF NOT EXISTS streams (channel TEXT NOT NULL, ts TEXT NOT NULL, PRIMARY KEY (channel, ts));
CREATE TABLE IF NOT EXISTS remote_files (
  file TEXT PRIMARY KEY, external_id TEXT NOT NULL UNIQUE, external_url TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS calls (
  id TEXT PRIMARY KEY, date_start INTEGER NOT NULL, date_end INTEGER NOT NULL DEFAULT 0, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS rate_limits (
  method TEXT PRIMARY KEY, calls INTEGER NOT NULL, seconds INTEGER NOT NULL, window INTEGER NOT NULL DEFAULT 0,
  used INTEGER NOT NULL DEFAULT 0);
"""

TABLES = (
    "team",
    "tokens",
    "users",
    "channels",
    "members",
    "messages",
    "ephemeral_messages",
    "scheduled_messages",
    "reactions",
    "pins",
    "bookmarks",
    "stars",
    "reminders",
    "usergroups",
    "files",
    "file_shares",
    "dnd",
    "emoji",
    "views",
    "rate_limits",
    "canvases",
    "lists",
    "list_items",
    "list_downloads",
    "shared_access",
    "streams",
    "remote_files",
    "calls",
)
