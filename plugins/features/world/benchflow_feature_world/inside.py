"""Runs in the world's box: copies of databases, putting them back, what differs. Orders come as JSON."""

# ruff: noqa: PTH101, PTH103, PTH105, PTH108, PTH110, PTH113, PTH116, PTH118, PTH119, PTH120, PTH123, PTH202, PTH207
from __future__ import annotations

import contextlib
import fcntl
import glob
import json
import os
import sqlite3
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FICLONE = 0x40049409
BUSY = 75
"""A writer was in the middle of something: let it go on, and ask again."""


def backup(order: dict[str, Any]) -> dict[str, Any]:
    """Online backup of every database that the patterns name, into a folder of ours. Other files are copied."""
    os.makedirs(order["folder"], mode=0o700, exist_ok=True)
    found: list[list[Any]] = []
    for path in sorted({p for pattern in order["paths"] for p in glob.glob(pattern)}):
        if path.endswith(("-wal", "-shm", "-journal")) or not os.path.isfile(path):
            continue
        name = f"{len(found)}-{os.path.basename(path)}"
        target = os.path.join(order["folder"], name)
        if is_database(path):
            copy_database(path, target)
        else:
            copy_file(path, target)
        state = os.stat(path)
        os.chmod(target, 0o600)
        found.append([path, name, state.st_uid, state.st_gid, state.st_mode & 0o7777])
    return {"folder": order["folder"], "files": found}


def is_database(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def copy_database(path: str, target: str) -> None:
    """As a file where nothing of it waits in the log, which costs what `cp` does; else by online backup."""
    if os.path.exists(target):
        os.unlink(target)
    source = sqlite3.connect(f"file:{quote(path)}?mode=rw", uri=True, timeout=0.2, isolation_level=None)
    try:
        if settled(source, path):
            copy_file(path, target)
            source.execute("rollback")
        else:
            back_up(source, target)
    finally:
        source.close()
    copy = sqlite3.connect(target)
    try:
        copy.execute("pragma journal_mode=delete")
    finally:
        copy.close()


def settled(source: sqlite3.Connection, path: str) -> bool:
    """The file alone is the whole state, and nobody writes until the transaction that this begins has ended."""
    busy = source.execute("pragma wal_checkpoint(truncate)").fetchone()[0]
    if busy:
        return False
    try:
        source.execute("begin immediate")
    except sqlite3.OperationalError:
        return False
    log = path + "-wal"
    if not (os.path.exists(log) and os.path.getsize(log)):
        return True
    source.execute("rollback")
    return False


def back_up(source: sqlite3.Connection, target: str) -> None:
    copy = sqlite3.connect(target)
    try:
        source.execute("pragma mmap_size=1073741824")
        copy.execute("pragma journal_mode=off")
        copy.execute("pragma synchronous=off")
        source.backup(copy)
    finally:
        copy.close()


def quote(path: str) -> str:
    """For a file: address. urllib, like shutil, costs more to import than a small database to copy."""
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def copy_file(path: str, target: str) -> None:
    """Without copying where the file system can share the blocks."""
    with open(path, "rb") as old, open(target, "wb") as new:
        try:
            fcntl.ioctl(new.fileno(), FICLONE, old.fileno())
        except OSError:
            while os.sendfile(new.fileno(), old.fileno(), None, 1 << 30):
                pass


def restore(order: dict[str, Any]) -> dict[str, Any]:
    """What the patterns name now and the copy did not have goes; the rest is put back, whole files at a time."""
    kept = {path for path, *_ in order["files"]}
    for path in {p for pattern in order["paths"] for p in glob.glob(pattern)} | kept:
        for side in ("-wal", "-shm", "-journal"):
            if os.path.exists(path + side):
                os.unlink(path + side)
        if path not in kept and os.path.isfile(path):
            os.unlink(path)
    for path, name, uid, gid, mode in order["files"]:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        making = path + ".benchflow"
        copy_file(os.path.join(order["folder"], name), making)
        os.chmod(making, mode)
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):
                os.chown(making, uid, gid)
        os.replace(making, path)
    return {}


def diff(order: dict[str, Any]) -> dict[str, Any]:
    """Rows that were added, removed or changed, table by table, by primary key."""
    before, after = tables(order["before"]), tables(order["after"])
    found: dict[str, list[Any]] = {"added": [], "removed": [], "changed": []}
    for table in sorted({*before, *after}):
        old, new = before.get(table, {}), after.get(table, {})
        for key in sorted({*old, *new}, key=repr):
            row = {"kind": table, "id": key if len(key) > 1 else key[0]}
            if key not in old:
                found["added"].append({**row, "after": new[key]})
            elif key not in new:
                found["removed"].append({**row, "before": old[key]})
            elif old[key] != new[key]:
                found["changed"].append({**row, "before": old[key], "after": new[key]})
    return found


def tables(path: str | None) -> dict[str, dict[Any, Any]]:
    if not path or not os.path.exists(path) or not is_database(path):
        return {}
    connection = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    try:
        names = connection.execute("select name, sql from sqlite_master where type='table'").fetchall()
        plain = [n for n, sql in names if not n.startswith("sqlite_") and "virtual" not in (sql or "").lower()[:40]]
        return {name: rows(connection, name) for name in plain}
    finally:
        connection.close()


def rows(connection: sqlite3.Connection, table: str) -> dict[Any, Any]:
    quoted = '"' + table.replace('"', '""') + '"'
    columns = connection.execute(f"pragma table_info({quoted})").fetchall()
    names = [column[1] for column in columns]
    keys = [column[1] for column in sorted(columns, key=lambda c: c[5]) if column[5]]
    found = {}
    for number, values in enumerate(connection.execute(f"select * from {quoted}")):
        row = {name: plain(value) for name, value in zip(names, values, strict=False)}
        found[tuple(row[key] for key in keys) if keys else (number,)] = row
    return found


def plain(value: object) -> object:
    return {"bytes": value.hex()} if isinstance(value, bytes) else value


def main() -> None:
    order = json.load(sys.stdin)
    try:
        answer = {"backup": backup, "restore": restore, "diff": diff}[sys.argv[1]](order)
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            sys.exit(BUSY)
        sys.exit(str(error))
    except (sqlite3.DatabaseError, OSError) as error:
        sys.exit(str(error))
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
