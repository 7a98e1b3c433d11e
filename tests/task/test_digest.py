"""The digest is pinned by registries: byte for byte what BenchFlow computes."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from benchflow_core.errors import TaskError
from benchflow_core.task import task_digest


def by_the_rule(folder: Path) -> str:
    """The rule, written down again in the plainest way."""
    files = []
    for top, _, names in os.walk(folder):
        for name in names:
            path = Path(top) / name
            if name != ".benchflow-source.json" and path.is_file() and not path.is_symlink():
                files.append((path.relative_to(folder).as_posix(), path))
    digest = hashlib.sha256()
    for relative, path in sorted(files):
        digest.update(relative.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return f"sha256:{digest.hexdigest()}"


def test_a_value_that_must_never_change(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "task.toml").write_text('version = "1.0"\n')
    (tmp_path / "tests" / "test.sh").write_text("#!/bin/sh\n")
    assert task_digest(tmp_path) == "sha256:d87a0f593b11d6fce0b90aeee0bb4bdac8ff902ba70e7917e989c04d66618019"


def test_equals_the_rule_on_an_awkward_tree(tmp_path: Path) -> None:
    for name in [
        "b/c.txt",
        "b-c.txt",
        "b.txt",
        "a/é ö.txt",
        ".git/HEAD",
        "__pycache__/x.pyc",
        ".DS_Store",
        "b/d/.benchflow-source.json",
    ]:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty-file").touch()
    (tmp_path / "link").symlink_to("b.txt")
    (tmp_path / "folder-link").symlink_to("b")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    assert task_digest(tmp_path) == by_the_rule(tmp_path)


@pytest.mark.parametrize("change", ["content", "name", "mode"])
def test_content_and_names_count_and_modes_do_not(tmp_path: Path, change: str) -> None:
    file = tmp_path / "a.sh"
    file.write_text("one")
    before = task_digest(tmp_path)
    if change == "content":
        file.write_text("two")
    elif change == "name":
        file.rename(tmp_path / "b.sh")
    else:
        file.chmod(0o755)
    assert (task_digest(tmp_path) == before) is (change == "mode")


def test_a_name_that_is_not_utf8_has_a_digest(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).write_text("x")
    assert task_digest(tmp_path).startswith("sha256:")


def test_a_missing_folder_is_a_task_error(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="does not exist"):
        task_digest(tmp_path / "gone")


@pytest.mark.slow
def test_two_thousand_files_in_a_blink(tmp_path: Path) -> None:
    for i in range(2000):
        folder = tmp_path / f"d{i % 40}"
        folder.mkdir(exist_ok=True)
        (folder / f"f{i}").write_bytes(i.to_bytes(4, "big") * 2500)
    times = []
    for _ in range(3):
        start = time.process_time()
        task_digest(tmp_path)
        times.append(time.process_time() - start)
    assert min(times) < 0.3
