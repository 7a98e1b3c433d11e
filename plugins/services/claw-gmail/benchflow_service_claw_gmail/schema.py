"""The tables. Their names and columns are what a task's verifier may read: README.md documents them."""

from __future__ import annotations

SCHEMA = """
CREATE TABLE IF NOT EXISTS users (
  email TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', history_id INTEGER NOT NULL, history_floor INTEGER NOT NULL,
  position INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS messages (
  user TEXT NOT NULL, id TEXT NOT NULL, thread_id TEXT NOT NULL, history_id INTEGER NOT NULL, labels TEXT NOT NULL,
  internal_date INTEGER NOT NULL, sender TEXT NOT NULL, recipients TEXT NOT NULL, cc TEXT NOT NULL, bcc TEXT NOT NULL,
  subject TEXT NOT NULL, snippet TEXT NOT NULL, body TEXT NOT NULL, filenames TEXT NOT NULL, rfc822_id TEXT NOT NULL,
  size INTEGER NOT NULL, raw BLOB NOT NULL, PRIMARY KEY (user, id));
CREATE INDEX IF NOT EXISTS messages_by_date ON messages (user, internal_date DESC, id DESC);
CREATE INDEX IF NOT EXISTS messages_by_thread ON messages (user, thread_id);
CREATE INDEX IF NOT EXISTS messages_by_rfc822 ON messages (user, rfc822_id);
CREATE TABLE IF NOT EXISTS drafts (
  user TEXT NOT NULL, id TEXT NOT NULL, message_id TEXT NOT NULL, PRIMARY KEY (user, id));
CREATE TABLE IF NOT EXISTS labels (
  user TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL, message_list_visibility TEXT,
  label_list_visibility TEXT, background_color TEXT, text_color TEXT, PRIMARY KEY (user, id));
CREATE TABLE IF NOT EXISTS history (
  user TEXT NOT NULL, id INTEGER NOT NULL, kind TEXT NOT NULL, message_id TEXT NOT NULL, thread_id TEXT NOT NULL,
  labels TEXT NOT NULL, message_labels TEXT NOT NULL, PRIMARY KEY (user, id));
CREATE TABLE IF NOT EXISTS settings (
  user TEXT NOT NULL, name TEXT NOT NULL, data TEXT NOT NULL, PRIMARY KEY (user, name));
CREATE TABLE IF NOT EXISTS filters (user TEXT NOT NULL, id TEXT NOT NULL, data TEXT NOT NULL, PRIMARY KEY (user, id));
CREATE TABLE IF NOT EXISTS send_as (user TEXT NOT NULL, id TEXT NOT NULL, data TEXT NOT NULL, PRIMARY KEY (user, id));
CREATE TABLE IF NOT EXISTS forwarding_addresses (
  user TEXT NOT NULL, id TEXT NOT NULL, data TEXT NOT NULL, PRIMARY KEY (user, id));
CREATE TABLE IF NOT EXISTS delegates (user TEXT NOT NULL, id TEXT NOT NULL, data TEXT NOT NULL, PRIMARY KEY (user, id));
"""

KINDS = {
    "users": "user",
    "messages": "message",
    "drafts": "draft",
    "labels": "label",
    "history": "history",
    "settings": "setting",
    "filters": "filter",
    "send_as": "send_as",
    "forwarding_addresses": "forwarding_address",
    "delegates": "delegate",
}
