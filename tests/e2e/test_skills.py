"""Skills in the box or nowhere in it; agents find them where they look, not in a prompt."""

from __future__ import annotations

import json
import shutil

import pytest

MARK = "skill-mark-7361"
HOSTS = ".cache .npm .pyenv docker containers node_modules site-packages .venv lib"
"""Folders of a host that a substituted image shows: large, read-only, and not the task's."""
EVERYWHERE = (
    "find /app /root /opt /srv /home /skills /tmp /var /etc /usr/local /logs -xdev "
    f"\\( {' -o '.join(f'-name {n}' for n in HOSTS.split())} \\) -prune -o -type f -mmin -60 -print0 2>/dev/null "
    f"| xargs -0 -r grep -sl {MARK[:-1]}[{MARK[-1]}]; echo searched"
)
WHOLE = f"grep -rsl {MARK[:-1]}[{MARK[-1]}] / --exclude-dir=proc --exclude-dir=sys --exclude-dir=dev; echo searched"


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
    def run(*commands, options=(), code=0, sandbox="local"):
        script = json.dumps({"turns": [[{"run": command}] for command in commands]})
        options = ["-a", name("scripted"), "--agent-option", f"script={script}", "--sandbox", name(sandbox), *options]
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


@pytest.mark.docker
@pytest.mark.xdist_group("docker")
@pytest.mark.parametrize("mode", ["no-skill", None])
def test_on_an_engine_the_whole_file_system_is_searched(play, task, mode):
    plugin = pytest.importorskip("benchflow_sandbox_docker.plugin", reason="the Docker sandbox is not installed")
    if not (found := plugin.benchflow_sandbox().available()).ok:
        pytest.skip(f"no Docker engine: {found.reason}")
    dockerfile = task / "environment/Dockerfile"
    dockerfile.write_text(dockerfile.read_text().replace("--chmod=755 ", ""))  # an engine without BuildKit knows it not
    options = ["--skill-mode", mode] if mode else []
    _, seen, _ = play(WHOLE, options=options, sandbox="docker")
    there = [] if mode else ["/skills/greeting/SKILL.md", "/srv/SKILL.md"]
    assert sorted(seen[0].splitlines()) == [*there, "searched"]


def test_skills_elsewhere_in_the_context_go_too(play, task):
    other = task / "environment/help/deep/more"
    other.mkdir(parents=True)
    (other / "SKILL.md").write_text(MARK)
    (task / "environment/help/keep.txt").write_text("kept")
    dockerfile = task / "environment/Dockerfile"
    dockerfile.write_text(dockerfile.read_text() + 'COPY ["help/deep", "/srv/deep"]\nCOPY . /srv/all/\n')
    result, seen, _ = play(EVERYWHERE + "; ls /srv /srv/all/help", options=["--skill-mode", "no-skill"])
    assert result["rewards"] is not None, result["error"]
    assert seen[0].startswith("searched\n") and "keep.txt" in seen[0] and "deep" not in seen[0]


def test_skills_that_an_image_makes_itself_leave_it_unscored(play, task):
    toml = task / "task.toml"
    toml.write_text(toml.read_text() + '\n[environment]\nskills_dir = "/made"\n')
    dockerfile = task / "environment/Dockerfile"
    dockerfile.write_text(dockerfile.read_text() + "RUN mkdir -p /made/x && echo hm > /made/x/SKILL.md\n")
    said = play("true", options=["--skill-mode", "no-skill"], code=1)
    assert "has skills that it makes itself: /made/x/SKILL.md" in said


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
