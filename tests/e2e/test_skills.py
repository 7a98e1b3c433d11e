"""Skills in the box or nowhere in it; agents find them where they look, not in a prompt."""

from __future__ import annotations

import json
import shutil
import tarfile
import time
import uuid

import pytest

MARK = f"skill-mark-{uuid.uuid4().hex[:12]}-x"
BEGAN = int(time.time()) - 5
_PATTERN = MARK[:-1] + "[x]"  # the search does not find itself
EVERYWHERE = (
    f"find / \\( -path /proc -o -path /sys \\) -prune -o -newerct @{BEGAN} "
    f"\\( -type f -exec grep -sl {_PATTERN} {{}} + , -name '*{_PATTERN}*' -print , -lname '*{_PATTERN}*' -print \\) "
    f"2>/dev/null; grep -sl {_PATTERN} /proc/[0-9]*/environ /proc/[0-9]*/cmdline; echo searched"
)
"""The whole file system as seen from inside, no folder left out. The mark is younger than any file of the host's that a
substituted image shows, so what did not change since cannot hold it."""


@pytest.fixture
def task(examples, tmp_path):
    folder = shutil.copytree(examples / "hello-file", tmp_path / "task")
    skill = folder / f"environment/skills/{MARK}"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(f"---\nname: greeting\ndescription: how to greet\n---\n{MARK}\n")
    dockerfile = folder / "environment/Dockerfile"
    dockerfile.write_text(
        dockerfile.read_text() + f"\nCOPY --chmod=755 skills \\\n  /skills\nCOPY name.txt skills/{MARK} /srv/\n"
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


def test_without_skills_nothing_of_them_is_anywhere(play, task):
    other = task / "environment/help/deep/more"
    other.mkdir(parents=True)
    (other / "SKILL.md").write_text(MARK)
    (task / "environment/help/keep.txt").write_text("kept")
    (task / "environment/SKILL.md").write_text(MARK)
    dockerfile = task / "environment/Dockerfile"
    more = 'COPY ["help/deep", "/srv/deep"]\nCOPY . /srv/all/\n'
    dockerfile.write_text(dockerfile.read_text() + more)
    look = "; ls /srv; ls /srv/all/help"
    result, seen, events = play(EVERYWHERE + look, options=["--skill-mode", "no-skill"])
    assert seen == ["searched\nall\nname.txt\nkeep.txt\n"], "the rest of a COPY stays"
    assert result["skill_mode"] == "no-skill"
    assert MARK not in json.dumps([e["data"] for e in events if e["kind"] == "turn_started"])


@pytest.mark.docker
@pytest.mark.xdist_group("docker")
@pytest.mark.parametrize("mode", ["no-skill", None])
def test_nor_on_an_engine(play, task, mode):
    plugin = pytest.importorskip("benchflow_sandbox_docker.plugin", reason="the Docker sandbox is not installed")
    if not (found := plugin.benchflow_sandbox().available()).ok:
        pytest.skip(f"no Docker engine: {found.reason}")
    dockerfile = task / "environment/Dockerfile"
    dockerfile.write_text(dockerfile.read_text().replace("--chmod=755 ", ""))  # an engine without BuildKit knows it not
    options = ["--skill-mode", mode] if mode else []
    _, seen, _ = play(EVERYWHERE, options=options, sandbox="docker")
    there = [] if mode else [f"/skills/{MARK}", f"/skills/{MARK}/SKILL.md", "/srv/SKILL.md"]
    assert sorted(set(seen[0].splitlines())) == [*there, "searched"]


def test_skills_that_an_image_makes_itself_leave_it_unscored(play, task):
    toml = task / "task.toml"
    toml.write_text(toml.read_text() + '\n[environment]\nskills_dir = "/made"\n')
    dockerfile = task / "environment/Dockerfile"
    dockerfile.write_text(dockerfile.read_text() + "RUN mkdir -p /made/x && echo hm > /made/x/SKILL.md\n")
    said = play("true", options=["--skill-mode", "no-skill"], code=1)
    assert "has skills that it makes itself: /made/x/SKILL.md" in said


def test_the_search_finds_them_where_they_are(play):
    _, seen, _ = play(EVERYWHERE)
    assert {f"/skills/{MARK}/SKILL.md", "/srv/SKILL.md"} <= set(seen[0].splitlines())


def test_a_context_root_is_stripped_too(play, task, tmp_path):
    shutil.copytree(task / "environment/skills", tmp_path / "shared/skills")
    dockerfile = task / "environment/Dockerfile"
    dockerfile.write_text(
        "FROM debian:bookworm-slim\nWORKDIR /app\nCOPY task/environment/name.txt .\nCOPY shared/skills /root/.agents/skills\n"
    )
    shutil.rmtree(task / "environment/skills")
    options = ["--skill-mode", "no-skill", "--context-root", tmp_path]
    _, seen, _ = play(EVERYWHERE + "; ls", options=options)
    assert seen == ["searched\nname.txt\n"]


def test_skills_out_of_an_archive_leave_it_unscored(play, task):
    with tarfile.open(task / "environment/more.tar", "w") as archive:
        archive.add(task / f"environment/skills/{MARK}", "packed")
    dockerfile = task / "environment/Dockerfile"
    dockerfile.write_text(dockerfile.read_text() + "ADD more.tar /root/.agents/skills/\n")
    said = play("true", options=["--skill-mode", "no-skill"], code=1)
    assert "has skills that it makes itself: /root/.agents/skills/packed/SKILL.md" in said


def test_with_skills_the_agent_finds_them_in_its_own_place(play):
    result, seen, events = play(f"cat ~/.agents/skills/{MARK}/SKILL.md", options=["--skill-mode", "with-skill"])
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


def test_no_step_is_verified_with_generated_skills_in_the_box(play, task, examples):
    """They are there again for the next step, as the one before left them."""
    shutil.rmtree(task)
    shutil.copytree(examples / "two-step-notes", task)
    for test in task.glob("steps/*/tests/test.sh"):
        test.write_text("#!/bin/sh\n[ ! -e generated-skills ] && echo 1 > /logs/verifier/reward.txt\n")
    make = "mkdir -p generated-skills/own && echo step >> generated-skills/own/SKILL.md"
    result, _, _ = play(make, options=["--skill-mode", "self-gen"])  # two roles in each step
    assert result["rewards"] == {"reward": 1.0}
    assert (result["dir"] / "artifacts/generated-skills/own/SKILL.md").read_text() == "step\n" * 4


def test_what_cannot_be_is_refused(play, task, tmp_path, bench, name):
    shutil.rmtree(task / "environment/skills")
    (tmp_path / "none").mkdir()
    assert "brings no skills" in play("true", options=["--skill-mode", "with-skill"], code=1)
    assert "no skill in" in play("true", options=["--skills-dir", str(tmp_path / "none")], code=1)
    both = ["--skills-dir", str(tmp_path / "none"), "--skill-mode", "no-skill"]
    assert "wants none" in play("true", options=both, code=1)
    assert not (tmp_path / "jobs").exists()
