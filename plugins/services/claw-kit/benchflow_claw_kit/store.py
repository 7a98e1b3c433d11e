"""The state: one SQLite file in WAL mode, with ids and a clock that repeat under a seed."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["Row", "Store", "StoreError"]

Row = dict[str, Any]

_OWN = """
CREATE TABLE IF NOT EXISTS _meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS _counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS _calls (
  seq INTEGER PRIMARY KEY, at INTEGER, method TEXT, verb TEXT, path TEXT, user TEXT, status INTEGER,
  refused TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS _tokens (token TEXT PRIMARY KEY, user TEXT NOT NULL, scopes TEXT, expires INTEGER);
CREATE TABLE IF NOT EXISTS _uploads (
  id TEXT PRIMARY KEY, verb TEXT, path TEXT, query TEXT, headers TEXT, metadata BLOB, media_type TEXT, total INTEGER,
  data BLOB, answer BLOB);
"""
_OWN_TABLES = ("_meta", "_counters", "_calls", "_tokens", "_uploads")
DEFAULT_EPOCH_MS = 1_772_442_000_000
"""2026-03-02 09:00 UTC, a Monday: when a seeded world begins, unless the seed says otherwise."""


class StoreError(Exception):
    """The database cannot be used; one line for the user."""


class Store:
    """All access goes through one connection and one lock, so that a request is one transaction and none is lost."""

    def __init__(self, path: str | Path, schema: str, clock: str | None = None) -> None:
        self.path = str(path)
        self.schema = schema
        self._clock = clock
        self._lock = threading.RLock()
        self._open()

    def _open(self) -> None:
        try:
            self._make_private()
            self.db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=10)
            self.db.row_factory = _as_dict
            self.db.execute("PRAGMA journal_mode=WAL")
            self.db.execute("PRAGMA synchronous=NORMAL")
            self.db.execute("PRAGMA foreign_keys=ON")
            self.db.execute("PRAGMA busy_timeout=10000")
            self.db.executescript(_OWN + self.schema)
            if "refused" not in {row["name"] for row in self.db.execute("PRAGMA table_info(_calls)")}:
                self.db.execute("ALTER TABLE _calls ADD COLUMN refused TEXT NOT NULL DEFAULT ''")  # a file from before
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self.path}: cannot be used as a database: {error}") from None

    def _make_private(self) -> None:
        if self.path != ":memory:":
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))

    def close(self) -> None:
        self.db.close()

    # -- transactions

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. Nested ones join the outer."""
        with self._lock:
            if self.db.in_transaction:
                yield
                return
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self.db.execute("ROLLBACK")
                raise
            self.db.execute("COMMIT")

    # -- rows

    def all(self, sql: str, *args: Any) -> list[Row]:
        with self._lock:
            return self.db.execute(sql, args).fetchall()

    def one(self, sql: str, *args: Any) -> Row | None:
        with self._lock:
            row: Row | None = self.db.execute(sql, args).fetchone()
            return row

    def value(self, sql: str, *args: Any) -> Any:
        row = self.one(sql, *args)
        return next(iter(row.values())) if row else None

    def run(self, sql: str, *args: Any) -> int:
        with self._lock:
            return self.db.execute(sql, args).rowcount

    def insert(self, table: str, replace: bool = False, **columns: Any) -> int:
        """One row; dicts and lists become JSON text. Returns its rowid."""
        names = ", ".join(columns)
        marks = ", ".join("?" * len(columns))
        verb = "INSERT OR REPLACE" if replace else "INSERT"
        with self._lock:
            cursor = self.db.execute(f"{verb} INTO {table} ({names}) VALUES ({marks})", _plain(columns))
            return cursor.lastrowid or 0

    def update(self, table: str, where: dict[str, Any], **columns: Any) -> int:
        sets = ", ".join(f"{name} = ?" for name in columns)
        keys = " AND ".join(f"{name} = ?" for name in where)
        return self.run(f"UPDATE {table} SET {sets} WHERE {keys}", *_plain(columns), *where.values())

    def delete(self, table: str, **where: Any) -> int:
        keys = " AND ".join(f"{name} = ?" for name in where)
        return self.run(f"DELETE FROM {table} WHERE {keys}", *where.values())

    # -- what repeats under a seed

    def get_meta(self, name: str, default: str = "") -> str:
        """Never kept in memory: two services may share a file."""
        row = self.one("SELECT value FROM _meta WHERE name = ?", name)
        return row["value"] if row else default

    def set_meta(self, name: str, value: str) -> None:
        self.insert("_meta", replace=True, name=name, value=value)

    def count(self, name: str) -> int:
        """1, 2, 3 … per name, kept in the database."""
        with self._lock:
            self.db.execute(
                "INSERT INTO _counters VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = value + 1", (name,)
            )
            value: int = self.value("SELECT value FROM _counters WHERE name = ?", name)
            return value

    def new_id(self, kind: str, length: int = 16, alphabet: str = "0123456789abcdef") -> str:
        """The next id of this kind: the same one for the same seed and the same history."""
        text = f"{self.get_meta('seed', '0')}:{kind}:{self.count('id:' + kind)}"
        number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=64).digest())
        digits = []
        for _ in range(length):
            number, digit = divmod(number, len(alphabet))
            digits.append(alphabet[digit])
        return "".join(digits)

    def now_ms(self) -> int:
        """World time: where the seed put it plus a second per change made since, or the wall clock's."""
        epoch = self.get_meta("epoch_ms")
        if self._clock == "real" or not epoch:
            return time.time_ns() // 1_000_000
        return int(epoch) + 1000 * int(self.get_meta("tick", "0"))

    def tick(self) -> None:
        if self.get_meta("epoch_ms"):
            self.set_meta("tick", str(int(self.get_meta("tick", "0")) + 1))

    @property
    def secret(self) -> str:
        """What page tokens are signed with."""
        return "claw:" + self.get_meta("seed", "0")

    # -- whole states

    def tables(self) -> list[str]:
        """Those of the service; the kit's own begin with an underscore."""
        rows = self.all("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        return sorted(row["name"] for row in rows if not row["name"].startswith("_"))

    def backup(self, target: str | Path) -> None:
        """An online copy, whole and consistent; the target appears at once or not at all."""
        target = Path(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        half = target.with_name(target.name + f".{os.getpid()}.part")
        try:
            os.close(os.open(half, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600))
            with self._lock:
                other = sqlite3.connect(half)
                try:
                    self.db.backup(other)
                    other.execute("PRAGMA journal_mode=DELETE")
                finally:
                    other.close()
            half.replace(target)
        except (sqlite3.Error, OSError) as error:
            half.unlink(missing_ok=True)
            raise StoreError(f"{target}: cannot be written: {error}") from None

    def restore(self, source: str | Path) -> None:
        """Everything becomes as it was in `source`, a copy made by `backup` or any database of this service."""
        if not Path(source).is_file():
            raise StoreError(f"{source}: no such file")
        try:
            other = sqlite3.connect(f"file:{Path(source).absolute().as_posix()}?mode=ro", uri=True)
            try:
                other.execute("SELECT count(*) FROM sqlite_master").fetchone()
                with self._lock:
                    other.backup(self.db)
                    self.db.execute("PRAGMA journal_mode=WAL")
                    self.db.executescript(_OWN + self.schema)
            finally:
                other.close()
        except sqlite3.Error as error:
            raise StoreError(f"{source}: cannot be used as a database: {error}") from None

    def clear(self, tables: Iterable[str] = ()) -> None:
        """No row left in these tables (default: all of them), nor in the kit's."""
        with self.transaction():
            self.db.execute("PRAGMA defer_foreign_keys=ON")
            for table in [*(tables or self.tables()), *_OWN_TABLES]:
                self.db.execute(f'DELETE FROM "{table}"')


def _as_dict(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> Row:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


def _plain(columns: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(
        json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value for value in columns.values()
    )
