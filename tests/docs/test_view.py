"""What the page on looking at runs shows is run as written."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "view.md").read_text()


def block(language: str) -> str:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)[0]


@pytest.fixture
def place(tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "home").mkdir()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "HOME": str(tmp_path / "home"), "BENCHFLOW_CACHE": str(tmp_path / "cache")}
    return tmp_path, env


def test_the_commands(place):
    folder, env = place
    for line in block("sh").splitlines():
        done = subprocess.run(shlex.split(line, comments=True), cwd=folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr + done.stdout
    assert (folder / "good.html").stat().st_size < 2_000_000
    assert (folder / "comparison" / "data" / "compare" / "good+idle.json").is_file()


def test_the_python(place):
    code = block("python")
    done = subprocess.run([sys.executable, "-c", code], cwd=place[0], env=place[1], capture_output=True, text=True)
    assert done.stdout.splitlines() == re.findall(r"print\(.*?# (.*)", code), done.stderr


def test_every_option_is_told():
    shown = subprocess.run([Path(sys.executable).with_name("bench"), "view", "--help"], capture_output=True, text=True)
    assert "Claude Code, Codex or ACP" in " ".join(shown.stdout.split())
    for option in ("--export", "--jobs-dir"):
        assert option in shown.stdout and option in TEXT
