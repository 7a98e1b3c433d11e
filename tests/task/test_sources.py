"""Which source serves an address, and what is said when none does."""

from __future__ import annotations

import subprocess

import pytest

from benchflow_core.errors import ConfigurationError
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


def test_an_address_that_nobody_serves(tmp_path):
    with pytest.raises(ConfigurationError, match="no installed source serves 'hub:something'") as wrong:
        fetch_source("hub:something", cache=tmp_path)
    assert "git" in wrong.value.remedy


def test_a_cache_that_cannot_be_written(bare, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be fetched"):
        fetch_source(str(bare), cache=tmp_path / "file")
