"""What the page on configuring shows is run as written, with a repository on this disk in GitHub's place."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchflow_core.task import task_digest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "configuring.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("configuring")
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "home").mkdir()
    env = {
        **os.environ,
        **{f"GIT_{a}_{b}": "t@example.org" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder / "home"),
        "BENCHFLOW_CACHE": str(folder / "cache"),
    }
    _repository(folder, env)
    for text in blocks("yaml"):
        name = text.partition("\n")[0].removeprefix("# ")
        (folder / name).write_text(text)
    return folder, env


def _repository(folder: Path, env: dict[str, str]) -> None:
    """SkillsBench as far as the page needs it: one task, and a registry that pins it."""
    work = folder / "mirror" / "benchflow-ai" / "skillsbench"
    task = shutil.copytree(ROOT / "examples/tasks/hello-file", work / "tasks" / "edit-pdf")

    def git(*args: str) -> str:
        done = subprocess.run(["git", *args], cwd=work, env=env, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "tasks")
    url = "https://github.com/benchflow-ai/skillsbench"
    pin = {
        "git_url": url,
        "git_commit_id": git("rev-parse", "HEAD"),
        "path": "tasks/edit-pdf",
        "digest": task_digest(task),
    }
    entry = {"name": "skillsbench", "version": "1.1", "bench_version": ">=0.6", "tasks": [pin]}
    (work / "registry.json").write_text(json.dumps([entry]))
    git("add", "-A")
    git("commit", "-qm", "registry")
    mirror = f'[url "file://{folder}/mirror/"]\n\tinsteadOf = https://github.com/\n'
    (folder / "home" / ".gitconfig").write_text(mirror)


def run(argv, place):
    folder, env = place
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.parametrize("line", [line for text in blocks("sh") for line in text.splitlines()])
def test_commands(place, line):
    argv = shlex.split(line, comments=True)
    redirected = ">" in argv
    argv = argv[: argv.index(">")] if redirected else [*argv, "--sandbox", "local"]
    done = run(argv, place)
    assert done.returncode == 0, done.stderr + done.stdout
    assert not redirected or json.loads(done.stdout)["properties"]


@pytest.mark.parametrize("code", blocks("python"))
def test_python(place, code):
    done = run([sys.executable, "-c", code], place)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == re.findall(r"print\(.*?# (.*)", code)
