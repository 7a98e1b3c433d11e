"""Documents in SQLite, and their twins in Drive's table when both services share a file."""

from __future__ import annotations

import hashlib
import json
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.store import Row, Store

from benchflow_service_claw_gdoc.compose import compose
from benchflow_service_claw_gdoc.model.defaults import new_tab
from benchflow_service_claw_gdoc.model.render import document_text
from benchflow_service_claw_gdoc.requests.suggestions import previewed

__all__ = [
    "SCHEMA",
    "TABLES",
    "create",
    "load_document",
    "new_id",
    "primary_user",
    "save",
    "save_talk",
    "show_time",
]

SCHEMA = """
CREATE TABLE IF NOT EXISTS doc_users (
  email TEXT PRIMARY KEY, name TEXT NOT NULL, is_primary INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS documents (
  id TEXT PRIMARY KEY, title TEXT NOT NULL, owner TEXT NOT NULL, revision INTEGER NOT NULL, revision_id TEXT NOT NULL,
  created INTEGER NOT NULL, modified INTEGER NOT NULL, modified_by TEXT NOT NULL, text TEXT NOT NULL,
  tabs TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS doc_access (
  document TEXT NOT NULL REFERENCES documents ON DELETE CASCADE, email TEXT NOT NULL, role TEXT NOT NULL,
  PRIMARY KEY (document, email));
CREATE TABLE IF NOT EXISTS doc_comments (
  document TEXT NOT NULL REFERENCES documents ON DELETE CASCADE, id TEXT NOT NULL, number INTEGER NOT NULL,
  status TEXT NOT NULL, quote TEXT NOT NULL, thread TEXT NOT NULL, PRIMARY KEY (document, id));
CREATE TABLE IF NOT EXISTS doc_suggestions (
  document TEXT NOT NULL REFERENCES documents ON DELETE CASCADE, id TEXT NOT NULL, number INTEGER NOT NULL,
  author TEXT NOT NULL, status TEXT NOT NULL, summary TEXT NOT NULL, thread TEXT NOT NULL, PRIMARY KEY (document, id));
CREATE TABLE IF NOT EXISTS doc_revisions (
  document TEXT NOT NULL REFERENCES documents ON DELETE CASCADE, revision_id TEXT NOT NULL, number INTEGER NOT NULL,
  modified INTEGER NOT NULL, modified_by TEXT NOT NULL, PRIMARY KEY (document, revision_id));
"""
TABLES = ("doc_users", "documents", "doc_access", "doc_comments", "doc_suggestions", "doc_revisions")
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
LOWER = "abcdefghijklmnopqrstuvwxyz0123456789"
MIME = "application/vnd.google-apps.document"


def new_id(store: Store, kind: str) -> str:
    return store.new_id("doc:" + kind, 12, LOWER)


def show_time(store: Store) -> str:
    return datetime.fromtimestamp(store.now_ms() / 1000, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def primary_user(store: Store) -> str:
    found = store.value("SELECT email FROM doc_users ORDER BY is_primary DESC, email LIMIT 1")
    return str(found)


def has_drive(store: Store) -> bool:
    return store.one("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'drive_files'") is not None


def _revision_id(document: str, number: int) -> str:
    digest = hashlib.blake2b(f"{document}:{number}".encode(), digest_size=40).digest()
    return "ALm37B" + "".join(ALPHABET[byte % 64] for byte in digest)


def create(store: Store, title: str, owner: str, document: str | None = None, tabs: list[Any] | None = None) -> Row:
    document = document or "1" + store.new_id("document", 43, ALPHABET)
    now = store.now_ms()
    body = {"title": title, "tabs": tabs or [new_tab("t.0", "Tab 1")]}
    revision = _revision_id(document, 1)
    store.insert(
        "documents",
        id=document,
        title=title,
        owner=owner,
        revision=1,
        revision_id=revision,
        created=now,
        modified=now,
        modified_by=owner,
        text=document_text(body),
        tabs=body["tabs"],
    )
    store.insert("doc_revisions", document=document, revision_id=revision, number=1, modified=now, modified_by=owner)
    _to_drive(store, document, title, owner, owner, new=True)
    return _row(store, document)


def _row(store: Store, document: str) -> Row:
    row = store.one("SELECT * FROM documents WHERE id = ?", document)
    if row is None:
        raise ApiError(404, "Requested entity was not found.", "notFound")
    return row


def load_document(store: Store, document: str, user: str, need: tuple[str, ...] = ()) -> tuple[Row, dict[str, Any]]:
    """The row and the document's model. 404 for one that is not there, 403 for one that is somebody else's."""
    if has_drive(store):
        _from_drive(store, document)
    row = _row(store, document)
    role = _role(store, row, user)
    if role is None or (need and role not in need):
        raise ApiError(403, "The caller does not have permission", "forbidden")
    tabs = json.loads(row["tabs"])
    model = {"title": row["title"], "documentId": row["id"], "revisionId": row["revision_id"], "tabs": tabs}
    threads = store.all("SELECT thread FROM doc_comments WHERE document = ? ORDER BY number", row["id"])
    made = store.all("SELECT thread FROM doc_suggestions WHERE document = ? ORDER BY number", row["id"])
    model["suggestions"] = [json.loads(one["thread"]) for one in made]
    return row, {**model, "comments": [json.loads(one["thread"]) for one in threads], "role": role}


def _role(store: Store, row: Row, user: str) -> str | None:
    if row["owner"] == user:
        return "owner"
    found: str | None = store.value(
        "SELECT role FROM doc_access WHERE document = ? AND email IN (?, 'anyone')"
        " ORDER BY role = 'writer' DESC, role = 'commenter' DESC",
        row["id"],
        user,
    )
    if found or not has_drive(store):
        return found
    shared = store.all("SELECT role, email, type FROM drive_permissions WHERE file = ? AND deleted = 0", row["id"])
    roles = {one["role"] for one in shared if one["type"] == "anyone" or (one["email"] or "").lower() == user.lower()}
    for role in ("owner", "organizer", "fileOrganizer", "writer", "commenter", "reader"):
        if role in roles:
            return "writer" if role in ("owner", "organizer", "fileOrganizer") else role
    return None


def save(store: Store, row: Row, document: dict[str, Any], user: str) -> str:
    """A new revision; returns its id."""
    number = row["revision"] + 1
    revision, now = _revision_id(row["id"], number), store.now_ms()
    tabs = deepcopy(document["tabs"])
    store.update(
        "documents",
        {"id": row["id"]},
        revision=number,
        revision_id=revision,
        modified=now,
        modified_by=user,
        text=document_text(previewed(document, False)),
        tabs=tabs,
    )
    _save_threads(store, row["id"], document)
    store.insert(
        "doc_revisions", document=row["id"], revision_id=revision, number=number, modified=now, modified_by=user
    )
    _to_drive(store, row["id"], row["title"], row["owner"], user)
    return revision


def save_talk(store: Store, document: str, model: dict[str, Any]) -> None:
    """Comments and suggestions, and no new revision."""
    text = document_text(previewed(model, False))
    store.update("documents", {"id": document}, tabs=model["tabs"], text=text)
    _save_threads(store, document, model)


def _save_threads(store: Store, document: str, model: dict[str, Any]) -> None:
    for table in ("doc_comments", "doc_suggestions"):
        store.delete(table, document=document)
    for number, one in enumerate(model.get("comments", [])):
        facts = {"status": one["status"], "quote": one["plainTextQuote"], "thread": one}
        store.insert("doc_comments", document=document, id=one["commentId"], number=number, **facts)
    for number, one in enumerate(model.get("suggestions", [])):
        facts = {"author": one["headPost"]["user"], "status": one["status"], "summary": one["summaryText"]}
        store.insert("doc_suggestions", document=document, id=one["suggestionId"], number=number, thread=one, **facts)


# -- one file for both services: Drive's table `drive_files` then lists the documents too


def _to_drive(store: Store, document: str, title: str, owner: str, user: str, new: bool = False) -> None:
    if not has_drive(store):
        return
    now = store.now_ms()
    if store.one("SELECT id FROM drive_files WHERE id = ?", document):
        store.run(
            "UPDATE drive_files SET modified = ?, modified_by = ?, version = version + 1 WHERE id = ?",
            now,
            user,
            document,
        )
    elif new:
        root = store.value("SELECT id FROM drive_files WHERE is_root = 1 AND owner = ?", owner)
        facts = {"name": title, "mime_type": MIME, "owner": owner, "parent": root, "created": now, "modified": now}
        store.insert("drive_files", id=document, modified_by=user, **facts)
        person = store.value("SELECT permission_id FROM drive_users WHERE email = ?", owner) or owner
        store.insert("drive_permissions", file=document, id=person, type="user", role="owner", email=owner)
    change = {"item": document, "kind": "file", "seq": store.count("drive:change"), "time": now, "readers": [owner]}
    store.insert("drive_changes", replace=True, **change)


def _from_drive(store: Store, document: str) -> None:
    """A document that was made, renamed, copied or deleted through Drive."""
    file = store.one("SELECT * FROM drive_files WHERE id = ? AND mime_type = ?", document, MIME)
    row = store.one("SELECT * FROM documents WHERE id = ?", document)
    if file is None:
        if row is not None:
            raise ApiError(404, "Requested entity was not found.", "notFound")
        return
    if row is None:
        with store.transaction():
            create(store, file["name"], file["owner"] or "", document, _first_tabs(store, file))
    elif row["title"] != file["name"]:
        store.update("documents", {"id": document}, title=file["name"])


def _first_tabs(store: Store, file: Row) -> list[Any] | None:
    """A copy has what the original had; an import has the text that was uploaded."""
    source = file["copied_from"] and store.one("SELECT tabs FROM documents WHERE id = ?", file["copied_from"])
    if source:
        tabs: list[Any] = previewed({"tabs": json.loads(source["tabs"])}, False)["tabs"]
        return tabs
    sql = "SELECT content FROM drive_revisions WHERE file = ? AND id = ?"
    text = bytes(store.value(sql, file["id"], file["head_revision"]) or b"").decode("utf-8", "replace")
    if not text.strip():
        return None
    return compose([new_tab("t.0", "Tab 1")], text.rstrip("\n").split("\n"), lambda kind: new_id(store, kind))
