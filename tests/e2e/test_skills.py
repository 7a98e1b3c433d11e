"""Skills in the box or nowhere in it; agents find them where they look, not in a prompt."""

from __future__ import annotations

import json
import shutil

import pytest

MARK = "skill-mark-7361"
EVERYWHERE = f"grep -rl {MARK[:-1]}[{MARK[-1]}] /app /root /opt /srv /home /skills /tmp /var /etc /usr/local /logs 2>/dev/null; echo searched"


@pytest.fixture
def task(examples, tmp_path):
    folder = shutil.copytree(examples / "hello-file", tmp_path / "task")
    skill = folder / "environment/skills/greeting"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(f"---\nname: greeting\ndescription: how to greet\n---\n{MARK}\n")
    dockerfile = folder / "environment/Dockerfile"
    dockerfile.write_text(
        dockerfile.read_text() + "\nCOPY --chmod=755 skills \\\n  /skills\nCOPY name.txt skills/greeting /srv/\n"
    )
    return folder


@pytest.fixture
def play(bench, name, task, result_of):
    def run(*commands, options=(), code=0):
        script = json.dumps({"turns": [[{"run": command}] for command in commands]})
        options = ["-a", name("scripted"), "--agent-option", f"script={script}", "--sandbox", name("local"), *options]
        done = bench("eval", "create", "-t", task, *options)
        assert done.code == code, done.err
        if code:
            return done.err
        result = result_of()
        events = [json.loads(line) for line in (result["dir"] / "events.jsonl").read_text().splitlines()]
        seen = [(e["data"].get("rawOutput") or {}).get("stdout") for e in events if e["kind"] == "tool_call_update"]
        return result, [text for text in seen if text], events

    return run


def test_without_skills_nothing_of_them_is_anywhere(play):
    result, seen, events = play(EVERYWHERE + "; ls /srv", options=["--skill-mode", "no-skill"])
    assert seen == ["searched\nname.txt\n"], "the rest of a COPY stays"
    assert result["skill_mode"] == "no-skill"
    assert MARK not in json.dumps([e["data"] for e in events if e["kind"] == "turn_started"])


def test_the_search_finds_them_where_they_are(play):
    _, seen, _ = play(EVERYWHERE)
    assert "/skills/greeting/SKILL.md" in seen[0]


def test_with_skills_the_agent_finds_them_in_its_own_place(play):
    result, seen, events = play("cat ~/.agents/skills/greeting/SKILL.md", options=["--skill-mode", "with-skill"])
    assert MARK in seen[0] and result["skill_mode"] == "with-skill"
    assert MARK not in json.dumps([e["data"] for e in events if e["kind"] == "turn_started"]), "not in the prompt"


def test_skills_of_the_users_choice(play, tmp_path):
    other = tmp_path / "mine" / "other"
    other.mkdir(parents=True)
    (other / "SKILL.md").write_text("mine")
    _, seen, _ = play("ls ~/.agents/skills", options=["--skills-dir", str(tmp_path / "mine")])
    assert seen == ["other\n"]


def test_an_agent_can_write_its_own_first(play):
    make = "mkdir -p generated-skills/own && echo own-skill > generated-skills/own/SKILL.md"
    result, _, events = play(make, options=["--skill-mode", "self-gen"])
    prompts = [e["data"]["prompt"] for e in events if e["kind"] == "turn_started"]
    assert len(prompts) == 2 and "generated-skills" in prompts[0] and "generated-skills" not in prompts[1]
    assert (result["dir"] / "artifacts/generated-skills/own/SKILL.md").read_text() == "own-skill\n"


def test_what_cannot_be_is_refused(play, task, tmp_path, bench, name):
    shutil.rmtree(task / "environment/skills")
    (tmp_path / "none").mkdir()
    assert "brings no skills" in play("true", options=["--skill-mode", "with-skill"], code=1)
    assert "no skill in" in play("true", options=["--skills-dir", str(tmp_path / "none")], code=1)
    both = ["--skills-dir", str(tmp_path / "none"), "--skill-mode", "no-skill"]
    assert "wants none" in play("true", options=both, code=1)
    assert not (tmp_path / "jobs").exists()
