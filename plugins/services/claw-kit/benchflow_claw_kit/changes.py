"""The whole state as plain JSON, and what differs between two states: by table, by row."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchflow_claw_kit.service import Service
from benchflow_claw_kit.store import StoreError

__all__ = ["diff", "dump", "dump_file"]

State = dict[str, dict[str, dict[str, Any]]]
"""Table to key to row."""


def dump(db: sqlite3.Connection, service: Service) -> State:
    """Rows by primary key, JSON columns as JSON, long bytes as size and digest; sorted."""
    state: State = {}
    cursor = db.cursor()
    cursor.row_factory = None
    names = [row[0] for row in cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    for table in names:
        if table.startswith(("_", "sqlite_")) or (service.tables and table not in service.tables):
            continue
        columns = cursor.execute(f'PRAGMA table_info("{table}")').fetchall()
        keys = [c[1] for c in sorted(columns, key=lambda c: c[5]) if c[5]]
        rows: dict[str, dict[str, Any]] = {}
        for values in cursor.execute(f'SELECT rowid, * FROM "{table}"' if not keys else f'SELECT 0, * FROM "{table}"'):
            row = {
                column[1]: _readable(value, f"{table}.{column[1]}" in service.blobs)
                for column, value in zip(columns, values[1:], strict=True)
            }
            key = "/".join(str(row[name]) for name in keys) if keys else str(values[0])
            rows[key] = row
        state[table] = dict(sorted(rows.items()))
    return state


def dump_file(path: str | Path, service: Service) -> State:
    """From a file alone: no server is needed, and the file may be read-only."""
    if not Path(path).is_file():
        raise StoreError(f"{path}: no such file")
    name = Path(path).absolute().as_posix().replace("?", "%3f").replace("#", "%23")
    for mode in ("mode=ro", "immutable=1"):
        try:
            db = sqlite3.connect(f"file:{name}?{mode}", uri=True)
            try:
                return dump(db, service)
            finally:
                db.close()
        except sqlite3.Error as error:
            last = error
    raise StoreError(f"{path}: cannot be read as a database: {last}")


def _readable(value: Any, opaque: bool) -> Any:
    if isinstance(value, bytes):
        if not opaque and len(value) < 2000:
            try:
                return value.decode()
            except UnicodeDecodeError:
                pass
        return {"bytes": len(value), "sha256": hashlib.sha256(value).hexdigest()}
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def diff(before: State, after: State, kinds: Mapping[str, str]) -> dict[str, list[dict[str, Any]]]:
    """`added`, `removed` and `changed`, each a list of `{"kind", "id", "before"?, "after"?}`."""
    found: dict[str, list[dict[str, Any]]] = {"added": [], "removed": [], "changed": []}
    for table in sorted({*before, *after}):
        old, new = before.get(table, {}), after.get(table, {})
        kind = kinds.get(table, table)
        for key in sorted({*old, *new}):
            entry: dict[str, Any] = {"kind": kind, "id": key}
            if key not in old:
                found["added"].append({**entry, "after": new[key]})
            elif key not in new:
                found["removed"].append({**entry, "before": old[key]})
            elif old[key] != new[key]:
                names = sorted(n for n in {*old[key], *new[key]} if old[key].get(n) != new[key].get(n))
                found["changed"].append({**entry, "fields": names, "before": old[key], "after": new[key]})
    return found
