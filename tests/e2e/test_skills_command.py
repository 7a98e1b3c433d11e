"""`bench skills`: what is there, and one from a repository."""

from __future__ import annotations

import subprocess

import pytest

SKILL = "---\nname: greeting\ndescription: How to greet.\n---\nSay hello.\n"


@pytest.fixture
def repository(tmp_path):
    work = tmp_path / "work"
    (work / "skills/greeting").mkdir(parents=True)
    (work / "skills/greeting/SKILL.md").write_text(SKILL)
    (work / "skills/greeting/secret").symlink_to("/etc/passwd")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(work)]
    for argv in (["init", "-q"], ["add", "."], ["commit", "-qm", "skills"]):
        subprocess.run([*git, *argv], check=True)
    subprocess.run(["git", "clone", "-q", "--bare", str(work), str(tmp_path / "skills.git")], check=True)
    return f"file://{tmp_path}/skills.git"


def test_install_and_list(bench, repository, tmp_path):
    done = bench("skills", "install", f"{repository}@greeting", "--json")
    assert done.code == 0, done.err
    place = tmp_path / "home/.agents/skills/greeting"
    assert done.json == {"name": "greeting", "path": str(place)}
    assert [p.name for p in place.iterdir()] == ["SKILL.md"], "a link does not come along"
    assert bench("skills", "list", "--json").json == [
        {"name": "greeting", "description": "How to greet.", "path": str(place)}
    ]
    again = bench("skills", "--install", f"{repository}@greeting")
    assert again.code == 1 and "exists already" in again.err and "--force" in again.err
    assert "How to greet." in bench("skills").out


@pytest.mark.parametrize(
    ("word", "why"),
    [("{}@nothing", "has no skill 'nothing'. There: greeting"), ("{}", "names no skill"), ("@x", "names no skill")],
)
def test_what_is_not_there_is_said(bench, repository, word, why):
    done = bench("skills", "install", word.format(repository))
    assert done.code == 1 and why in done.err, done.err
