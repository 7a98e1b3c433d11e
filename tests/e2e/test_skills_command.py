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
    assert bench("skills", "list", "--dir", place.parent, "--json").json == bench("skills", "list", "--json").json
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


@pytest.fixture
def skill(tmp_path):
    folder = tmp_path / "skills/greeting"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    return tmp_path / "skills"


HELPED = """
- read: /root/.agents/skills/greeting/SKILL.md
- run: test -e /root/.agents/skills/greeting && echo "Hello, $(cat name.txt)!" > hello.txt
"""


def test_what_a_skill_is_worth(bench, skill, name, examples):
    options = ["-a", name("scripted"), "--agent-option", f"script={HELPED}", "-e", name("local"), "--trials", "2"]
    argv = ["skills", "eval", skill, "-t", examples, "--include", "hello-*", *options]
    done = bench(*argv, "--json")
    assert done.code == 0, done.err
    lift = done.json["lift"]
    assert (lift["base"], lift["other"], lift["tasks"], lift["difference"]) == ("no-skill", "with-skill", 2, 0.5)
    assert lift["interval"][0] < 0.5 < lift["interval"][1]
    assert lift["by_task"] == [
        {"task": "hello-doc", "without": 0.0, "with": 0.0, "invocations": 2},
        {"task": "hello-file", "without": 0.0, "with": 1.0, "invocations": 2},
    ]
    assert (lift["runs"], lift["used"]) == (4, 4)


def test_an_evaluation_that_compares_something_else_is_refused(bench, skill, name, examples, tmp_path):
    one = ["skills", "eval", skill, "-t", examples / "hello-file", "-e", name("local")]
    done = bench(*one, "-a", f"{name('oracle')},{name('nop')}")
    assert done.code == 2 and "compares one agent with itself" in done.err
    (tmp_path / "empty").mkdir()
    none = bench("skills", "eval", "empty", "-t", examples / "hello-file", "-a", name("oracle"), "-e", name("local"))
    assert none.code == 1 and "no skill in empty" in none.err and not (tmp_path / "jobs").exists()


def test_the_older_spelling_runs_tasks_with_skills(bench, skill, name, examples, result_of):
    argv = ["-t", examples / "hello-file", "--skills-dir", skill, "-a", name("scripted"), "-e", name("local")]
    done = bench("eval", *argv, "--agent-option", f"script={HELPED}")
    assert done.code == 0, done.err
    result = result_of()
    assert result["rewards"] == {"reward": 1.0} and result["n_skill_invocations"] == 1
