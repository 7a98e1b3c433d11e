"""Which source serves an address, and what is said when none does."""

from __future__ import annotations

import json
import subprocess

import pytest

from benchflow_core.errors import ConfigurationError
from benchflow_core.task import task_digest
from benchflow_core.task.sources import fetch_source


@pytest.fixture
def bare(make_task, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "t")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "t@example.org")
    make_task("work/tasks/one")
    work = tmp_path / "work"
    for command in (
        ["init", "-q"],
        ["add", "-A"],
        ["commit", "-qm", "x"],
        ["clone", "-q", "--bare", ".", "../bare.git"],
    ):
        subprocess.run(["git", *command], cwd=work, check=True)
    return tmp_path / "bare.git"


def test_a_repository_is_fetched_into_the_cache_of_its_source(bare, tmp_path):
    fetched = fetch_source(str(bare), path="tasks/one", cache=tmp_path / "cache")
    assert fetched.root.is_relative_to(tmp_path / "cache" / "sources") and fetched.root.name == "one"
    assert (fetched.root / "task.toml").is_file()


def test_content_that_is_not_what_a_source_pins(bare, tmp_path):
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=bare, check=True, capture_output=True, text=True).stdout
    pinned = {"git_url": str(bare), "git_commit_id": commit.strip(), "path": "tasks/one"}

    def fetch(digest, path="tasks/one"):
        entry = {"name": "set", "version": "1", "tasks": [{**pinned, "path": path, "digest": digest}]}
        (tmp_path / "registry.json").write_text(json.dumps([entry]))
        options = {"registry": str(tmp_path / "registry.json")}
        return fetch_source("dataset:set@1", cache=tmp_path / "cache", options=options)

    right = task_digest(tmp_path / "work/tasks/one")
    assert fetch(right).digests == (right,)
    with pytest.raises(ConfigurationError, match=r"content of 1 of 1 tasks is not what the registry pins: one \("):
        fetch(f"sha256:{'0' * 64}")
    with pytest.raises(ConfigurationError, match=r"gone .*nothing there"):
        fetch(right, "tasks/gone")


def test_an_address_that_nobody_serves(tmp_path):
    with pytest.raises(ConfigurationError, match="no installed source serves 'hub:something'") as wrong:
        fetch_source("hub:something", cache=tmp_path)
    assert "git" in wrong.value.remedy


def test_a_cache_that_cannot_be_written(bare, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be fetched"):
        fetch_source(str(bare), cache=tmp_path / "file")
