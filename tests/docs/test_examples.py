"""What the README and the first page show is run as written."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


@pytest.fixture
def place(tmp_path):
    """An empty folder with the examples in it, and a clean home."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "home").mkdir()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return tmp_path, {
        **os.environ,
        "PATH": path,
        "HOME": str(tmp_path / "home"),
        "BENCHFLOW_CACHE": str(tmp_path / "cache"),
    }


def run(argv, place):
    folder, env = place
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)


def masked(text: str) -> str:
    """Times and dates differ from run to run; nothing else may."""
    return re.sub(r"\d{4}-\d\d-\d\d__[\d-]+", "DATE", re.sub(r"in \d+\.\d s", "in TIME", text))


def test_the_console_session_of_the_readme(place):
    [session] = blocks("README.md", "console")
    command, _, shown = session.partition("\n")
    argv = shlex.split(command.removeprefix("$ .venv/bin/"))
    done = run(argv, place)
    assert done.returncode == 0, done.stderr
    notes = [line for line in done.stderr.splitlines() if not line.startswith("note:")]
    assert masked("\n".join([*notes, done.stdout])) == masked(shown)


@pytest.mark.parametrize("page", ["README.md", "docs/scenes.md", "docs/learning.md"])
def test_the_python_of_a_page(place, page):
    [code] = blocks(page, "python")
    done = run([sys.executable, "-c", code], place)
    assert done.returncode == 0, done.stderr
    expected = re.findall(r"print\(.*?# (.*)", code)
    assert done.stdout.splitlines() == expected


def test_the_first_run_of_the_documentation(place):
    first_run = blocks("docs/index.md", "sh")[1]
    for line in first_run.splitlines():
        done = run(shlex.split(line, comments=True), place)
        assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.parametrize("page", ["docs/learning.md", "docs/scenes.md"])
def test_the_commands_of_a_page(place, page):
    """In their order, in one folder, with the files the page shows."""
    folder, _ = place
    for block in blocks(page, "yaml"):
        if (name := re.match(r"# (\S+\.yaml)\n", block)) is not None:
            (folder / name[1]).write_text(block)
    for line in (line for block in blocks(page, "sh") for line in block.splitlines()):
        done = run(shlex.split(line, comments=True), place)
        assert done.returncode == 0, f"{line}\n{done.stderr}{done.stdout}"
