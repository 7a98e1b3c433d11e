"""The tables. Times are milliseconds since 1970; a file of Google's own kind has text instead of bytes."""

from __future__ import annotations

__all__ = ["SCHEMA", "TABLES"]

SCHEMA = """
CREATE TABLE IF NOT EXISTS drive_users (
  email TEXT PRIMARY KEY, name TEXT NOT NULL, permission_id TEXT NOT NULL UNIQUE, is_primary INTEGER NOT NULL DEFAULT 0,
  quota INTEGER NOT NULL DEFAULT 16106127360);
CREATE TABLE IF NOT EXISTS drive_drives (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, created INTEGER NOT NULL, request_id TEXT, color TEXT, theme TEXT,
  restrictions TEXT NOT NULL DEFAULT '{}');
CREATE TABLE IF NOT EXISTS drive_files (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, mime_type TEXT NOT NULL, description TEXT, owner TEXT, parent TEXT,
  drive TEXT,
  is_root INTEGER NOT NULL DEFAULT 0, space TEXT NOT NULL DEFAULT 'drive', trashed INTEGER NOT NULL DEFAULT 0,
  trashed_time INTEGER, trashed_by TEXT, created INTEGER NOT NULL, modified INTEGER NOT NULL, modified_by TEXT NOT NULL,
  version INTEGER NOT NULL DEFAULT 1, size INTEGER, md5 TEXT, sha1 TEXT, sha256 TEXT, head_revision TEXT,
  original_name TEXT, properties TEXT NOT NULL DEFAULT '{}', app_properties TEXT NOT NULL DEFAULT '{}',
  shortcut_target TEXT, folder_color TEXT, copied_from TEXT, settings TEXT NOT NULL DEFAULT '{}', indexable_text TEXT);
CREATE INDEX IF NOT EXISTS drive_files_parent ON drive_files (parent);
CREATE TABLE IF NOT EXISTS drive_user_files (
  file TEXT NOT NULL REFERENCES drive_files ON DELETE CASCADE, user TEXT NOT NULL, starred INTEGER NOT NULL DEFAULT 0,
  viewed INTEGER, modified INTEGER, PRIMARY KEY (file, user));
CREATE TABLE IF NOT EXISTS drive_revisions (
  file TEXT NOT NULL REFERENCES drive_files ON DELETE CASCADE, id TEXT NOT NULL, number INTEGER NOT NULL,
  modified INTEGER NOT NULL, modified_by TEXT NOT NULL, mime_type TEXT NOT NULL, size INTEGER, md5 TEXT,
  original_name TEXT,
  keep_forever INTEGER NOT NULL DEFAULT 0, published INTEGER NOT NULL DEFAULT 0,
  publish_auto INTEGER NOT NULL DEFAULT 0,
  outside_domain INTEGER NOT NULL DEFAULT 0, content BLOB, PRIMARY KEY (file, id));
CREATE TABLE IF NOT EXISTS drive_permissions (
  file TEXT NOT NULL, id TEXT NOT NULL, type TEXT NOT NULL, role TEXT NOT NULL, email TEXT, domain TEXT,
  discoverable INTEGER NOT NULL DEFAULT 0, expires INTEGER, pending_owner INTEGER NOT NULL DEFAULT 0, view TEXT,
  deleted INTEGER NOT NULL DEFAULT 0, shared INTEGER NOT NULL DEFAULT 0, shared_by TEXT, PRIMARY KEY (file, id));
CREATE TABLE IF NOT EXISTS drive_comments (
  id TEXT PRIMARY KEY, file TEXT NOT NULL REFERENCES drive_files ON DELETE CASCADE, author TEXT NOT NULL,
  content TEXT NOT NULL,
  quoted TEXT, anchor TEXT, created INTEGER NOT NULL, modified INTEGER NOT NULL, resolved INTEGER NOT NULL DEFAULT 0,
  deleted INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS drive_replies (
  id TEXT PRIMARY KEY, comment TEXT NOT NULL REFERENCES drive_comments ON DELETE CASCADE, author TEXT NOT NULL,
  content TEXT NOT NULL, action TEXT, created INTEGER NOT NULL, modified INTEGER NOT NULL,
  deleted INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS drive_changes (
  item TEXT PRIMARY KEY, kind TEXT NOT NULL, seq INTEGER NOT NULL, removed INTEGER NOT NULL DEFAULT 0,
  time INTEGER NOT NULL,
  readers TEXT NOT NULL DEFAULT '[]', drive TEXT);
CREATE TABLE IF NOT EXISTS drive_channels (
  id TEXT NOT NULL, resource TEXT NOT NULL, address TEXT NOT NULL, token TEXT, expiration INTEGER,
  watched TEXT NOT NULL,
  PRIMARY KEY (id, resource));
CREATE TABLE IF NOT EXISTS drive_approvals (
  id TEXT PRIMARY KEY, file TEXT NOT NULL REFERENCES drive_files ON DELETE CASCADE, initiator TEXT NOT NULL,
  status TEXT NOT NULL, created INTEGER NOT NULL, modified INTEGER NOT NULL, completed INTEGER, due INTEGER,
  on_change TEXT NOT NULL, revision TEXT, responses TEXT NOT NULL, log TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS drive_proposals (
  id TEXT PRIMARY KEY, file TEXT NOT NULL REFERENCES drive_files ON DELETE CASCADE, requester TEXT NOT NULL,
  recipient TEXT NOT NULL, role TEXT NOT NULL, message TEXT NOT NULL DEFAULT '', created INTEGER NOT NULL,
  resolved TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS drive_labels (id TEXT PRIMARY KEY, revision TEXT NOT NULL, fields TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS drive_file_labels (
  file TEXT NOT NULL REFERENCES drive_files ON DELETE CASCADE, label TEXT NOT NULL, fields TEXT NOT NULL,
  PRIMARY KEY (file, label));
CREATE TABLE IF NOT EXISTS drive_operations (
  name TEXT PRIMARY KEY, user TEXT NOT NULL, created INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS drive_apps (id TEXT PRIMARY KEY, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS drive_hidden (drive TEXT NOT NULL, user TEXT NOT NULL, PRIMARY KEY (drive, user));
"""

TABLES = (
    "drive_users",
    "drive_drives",
    "drive_files",
    "drive_user_files",
    "drive_revisions",
    "drive_permissions",
    "drive_comments",
    "drive_replies",
    "drive_changes",
    "drive_channels",
    "drive_hidden",
    "drive_approvals",
    "drive_proposals",
    "drive_labels",
    "drive_file_labels",
    "drive_operations",
    "drive_apps",
)
