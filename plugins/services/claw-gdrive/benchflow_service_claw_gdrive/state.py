"""Changing files: contents with their revisions, and the log of changes."""

from __future__ import annotations

import hashlib
import mimetypes
from typing import Any

from benchflow_claw_kit.store import Row, Store

from benchflow_service_claw_gdrive.access import ALPHABET, FOLDER, add_permission, permissions_on
from benchflow_service_claw_gdrive.formats import import_text, is_editor

__all__ = [
    "below",
    "file_text",
    "get_row",
    "guess_type",
    "insert_file",
    "log_change",
    "put_content",
    "remove_tree",
    "touch",
]


def new_file_id(store: Store) -> str:
    return "1" + store.new_id("drive file", 32, ALPHABET)


def get_row(store: Store, file: str) -> Row:
    row = store.one("SELECT * FROM drive_files WHERE id = ?", file)
    assert row is not None
    return row


def guess_type(name: str, media: bytes | None, media_type: str) -> str:
    kind = media_type.partition(";")[0].strip().lower()
    if kind and kind not in ("application/octet-stream", "*/*"):
        return kind
    guessed = mimetypes.guess_type(name)[0]
    if guessed:
        return guessed
    return kind or "application/octet-stream"


def log_change(store: Store, row: Row, removed: bool = False) -> None:
    """The last change of each item, with those who could see it: somebody must learn of what is gone."""
    people = [p["email"] for p in permissions_on(store, row) if p["email"]]
    store.insert(
        "drive_changes",
        replace=True,
        item=row["id"],
        kind="file",
        seq=store.count("drive:change"),
        removed=int(removed),
        time=store.now_ms(),
        readers=sorted({*people, *([row["owner"]] if row["owner"] else [])}),
        drive=row["drive"],
    )


def touch(store: Store, file: str, user: str, modified: int | None = None, content: bool = True) -> Row:
    """One version more; `content` also moves the time of modification."""
    now = store.now_ms()
    store.run("UPDATE drive_files SET version = version + 1 WHERE id = ?", file)
    if content:
        store.update("drive_files", {"id": file}, modified=modified or now, modified_by=user)
        own = store.one("SELECT * FROM drive_user_files WHERE file = ? AND user = ?", file, user) or {
            "file": file,
            "user": user,
        }
        store.insert("drive_user_files", replace=True, **{**own, "modified": modified or now})
    row = get_row(store, file)
    log_change(store, row)
    return row


def insert_file(store: Store, user: str, name: str, mime_type: str, parent: Row | None, **columns: Any) -> Row:
    """In a folder, or loose in a shared drive; the owner is the user, or nobody in a shared drive."""
    now = store.now_ms()
    drive = columns.pop("drive", None) or (parent["drive"] if parent else None)
    file = columns.pop("id", None) or new_file_id(store)
    facts = {"created": now, "modified": now, **{k: v for k, v in columns.items() if v is not None}}
    store.insert(
        "drive_files",
        id=file,
        name=name,
        mime_type=mime_type,
        owner=None if drive else user,
        parent=parent["id"] if parent else None,
        drive=drive,
        modified_by=user,
        **facts,
    )
    if not drive:
        add_permission(store, file, "user", "owner", user)
    store.insert("drive_user_files", file=file, user=user, viewed=now, modified=facts["modified"])
    row = get_row(store, file)
    log_change(store, row)
    return row


def put_content(
    store: Store, file: str, user: str, media: bytes, mime_type: str, name: str | None, keep: bool = False
) -> None:
    """A new head revision. A file of Google's own kind keeps text."""
    row = get_row(store, file)
    number = (store.value("SELECT max(number) FROM drive_revisions WHERE file = ?", file) or 0) + 1
    editor = is_editor(row["mime_type"])
    content = import_text(media, mime_type).encode() if editor else media
    revision = str(number) if editor else "0B" + store.new_id("revision", 26, ALPHABET)
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    store.insert(
        "drive_revisions",
        file=file,
        id=revision,
        number=number,
        modified=store.now_ms(),
        modified_by=user,
        mime_type=row["mime_type"] if editor else mime_type,
        size=len(content),
        md5=md5,
        original_name=name or row["name"],
        keep_forever=int(keep),
        content=content,
    )
    columns: dict[str, Any] = {"head_revision": revision}
    if not editor:
        sha1 = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        columns |= {"size": len(content), "md5": md5, "sha1": sha1, "sha256": hashlib.sha256(content).hexdigest()}
        columns |= {"mime_type": mime_type, "original_name": row["original_name"] or name or row["name"]}
    store.update("drive_files", {"id": file}, **columns)
    _to_docs(store, row, content)


def _to_docs(store: Store, row: Row, content: bytes) -> None:
    """Docs reads this once, when it first opens a document that came through Drive."""
    if row["mime_type"].endswith(".document") and has_docs(store):
        store.delete("documents", id=row["id"])


def has_docs(store: Store) -> bool:
    return store.one("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'documents'") is not None


def file_content(store: Store, row: Row, revision: str | None = None) -> bytes:
    found = store.value(
        "SELECT content FROM drive_revisions WHERE file = ? AND id = ?", row["id"], revision or row["head_revision"]
    )
    return bytes(found or b"")


def file_text(store: Store, row: Row) -> str:
    """What full-text search and exports read."""
    if row["mime_type"].endswith(".document") and has_docs(store):
        text = store.value("SELECT text FROM documents WHERE id = ?", row["id"])
        if text is not None:
            return str(text)
    if is_editor(row["mime_type"]) or row["mime_type"].startswith("text/") or row["mime_type"] in ("application/json",):
        return file_content(store, row)[:1_000_000].decode("utf-8", "replace")
    return ""


def below(store: Store, file: str) -> list[Row]:
    """Everything in a folder, the deepest first."""
    found: list[Row] = []
    todo = [file]
    while todo:
        children = store.all("SELECT * FROM drive_files WHERE parent = ?", todo.pop())
        found.extend(children)
        todo.extend(child["id"] for child in children if child["mime_type"] == FOLDER)
    return found[::-1]


def remove_tree(store: Store, row: Row) -> None:
    """For good, with all that is in it."""
    for one in [*below(store, row["id"]), row]:
        log_change(store, one, removed=True)
    for one in [*below(store, row["id"]), row]:
        store.delete("drive_permissions", file=one["id"])
        store.delete("drive_files", id=one["id"])
