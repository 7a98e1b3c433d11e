"""The program that copies databases in the world's box, run as it is run there."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys

import pytest
from benchflow_feature_world import inside


def order(what, **orders):
    program = [sys.executable, "-I", "-S", inside.__file__, what]
    return subprocess.run(program, input=json.dumps(orders), capture_output=True, text=True, timeout=60)


def rows(path):
    with sqlite3.connect(f"file:{inside.quote(str(path))}?mode=ro", uri=True) as db:
        return [value for (value,) in db.execute("select v from t order by v")]


@pytest.mark.parametrize("mode", ["wal", "delete"])
@pytest.mark.parametrize("reader", [False, True], ids=["alone", "beside a reader"])
def test_a_copy_has_all_that_was_committed_and_can_be_read_alone(tmp_path, mode, reader):
    """A reader keeps what is in the log from being folded into the file: then the online backup does it."""
    path = tmp_path / "a ?%#.db"
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(f"pragma journal_mode={mode}")
    db.execute("create table t (v)")
    db.execute("insert into t values (1)")
    other = sqlite3.connect(path, isolation_level=None)
    if reader:
        other.execute("begin")
        other.execute("select * from t").fetchall()
    if mode == "wal" or not reader:
        db.execute("insert into t values (2)")
    done = order("backup", paths=[str(tmp_path / "*.db")], folder=str(tmp_path / "kept"))
    assert done.returncode == 0, done.stderr
    kept = json.loads(done.stdout)
    [[source, name, *_]] = kept["files"]
    expected = rows(path)
    assert source == str(path) and rows(tmp_path / "kept" / name) == expected
    assert sorted(p.name for p in (tmp_path / "kept").iterdir()) == [name]
    other.close()
    db.execute("insert into t values (3)")
    db.close()
    (tmp_path / "new.db").write_bytes(b"")
    assert order("restore", paths=[str(tmp_path / "*.db")], **kept).returncode == 0
    assert rows(path) == expected and not (tmp_path / "new.db").exists()


def test_a_writer_in_the_middle_is_busy(tmp_path):
    path = tmp_path / "a.db"
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("create table t (v)")
    db.execute("begin exclusive")
    assert order("backup", paths=[str(path)], folder=str(tmp_path / "kept")).returncode == inside.BUSY
