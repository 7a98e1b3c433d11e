"""The skills that this repository brings for coding agents: they are where agents look, and what they say is true."""

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
from benchflow_feature_standard.skills.folders import read_skills

ROOT = Path(__file__).parents[2]
SKILLS = ROOT / ".claude" / "skills"
REVIEW = SKILLS / "benchflow-experiment-review"
NAMES = ["benchflow", "benchflow-experiment-review"]


def _contents(root: Path) -> dict[str, bytes]:
    files = [path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def test_both_places_hold_the_same():
    """Copies and not links, which not every way of handing on a repository keeps. The tasks are in the first alone."""
    for name in NAMES:
        one, other = (_contents(place / name) for place in (SKILLS, ROOT / ".agents/skills"))
        assert {path: data for path, data in one.items() if not path.startswith("tasks/")} == other
    for place in (SKILLS, ROOT / ".agents/skills"):
        found = read_skills(place)
        assert [skill.name for skill in found] == NAMES and all(len(skill.description) > 100 for skill in found)


def commands(path: Path) -> list[list[str]]:
    blocks = re.findall(r"```sh\n(.*?)```", path.read_text(), re.DOTALL)
    inline = re.findall(r"`(bench [a-z][^`]*)`", path.read_text())
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()] + inline
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("bench ")]


PLACES = {"TASKS": "tasks", "AGENT": "oracle", "claude-agent-acp": "oracle", "DIR": "skills", "JOB": "mine"}
ELSEWHERE = {"jobs/a": "jobs/mine", "jobs/b": "jobs/again", "TASKS/one-task": "tasks/one-task", "JOB/ROLLOUT": "kept"}


@pytest.mark.timeout(600)
def test_every_command_of_the_skill_runs(tmp_path):
    """In the order in which they stand there, with the names of somebody who does it."""
    shutil.copytree(ROOT / "examples/tasks/hello-file", tmp_path / "tasks/one-task")
    shutil.copytree(SKILLS / "benchflow-experiment-review", tmp_path / "skills/review")
    (tmp_path / "job.yaml").write_text("tasks_dir: tasks\nagent: oracle\nsandbox: local\njob_name: again\n")
    env = {**os.environ, "BENCHFLOW_CACHE": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    words = {**PLACES, **ELSEWHERE}

    def bench(*argv: str) -> None:
        command = [sys.executable, "-m", "benchflow_core.cli.main", *argv]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, f"bench {' '.join(argv)}\n{done.stdout}{done.stderr}"

    for argv in commands(SKILLS / "benchflow/SKILL.md"):
        argv = [words.get(word, word) for word in argv]
        if {"oracle", "--config"} & {*argv} and "-m" in argv:  # it plays the solution, and takes no model
            del argv[argv.index("-m") : argv.index("-m") + 2]
        if argv[:2] in (["eval", "create"], ["skills", "eval"]) and "--config" not in argv:
            argv += ["-e", "local"]
        if argv[:2] == ["tasks", "check"]:
            argv += ["--sandbox", "local"] if "live" in argv else []
        if argv[:2] == ["eval", "shell"]:
            bench(
                "eval", "create", "-t", "tasks", "-a", "nop", "-e", "local", "--keep-state", "failed", "--job-name", "k"
            )
            [kept] = (tmp_path / "jobs/k").glob("one-task*")
            argv = [str(kept) if word == "kept" else word for word in argv] + ["--command", "true"]
        if argv[:2] == ["learner", "log"]:
            text = "tasks_dir: tasks\nagent: oracle\nsandbox: local\njob_mode: sequential-shared\njob_name: learnt\n"
            (tmp_path / "learn.yaml").write_text(text)
            bench("eval", "create", "--config", "learn.yaml")
            argv[2] = "learnt"
        bench(*argv)


def options(path: Path) -> set[str]:
    return set(re.findall(r"`(--[a-z-]+)[^`]*`", path.read_text()))


def test_every_option_of_the_skill_exists():
    from benchflow_core.cli.eval.create import create

    known = {spelling for param in create.params for spelling in param.opts} | {"--help", "--json"}
    assert options(SKILLS / "benchflow/SKILL.md") <= known


@pytest.mark.parametrize(("agent", "passed"), [("oracle", 3), ("nop", 0)])
def test_the_validation_tasks_are_scored_by_our_own_runner(tmp_path, agent, passed):
    argv = [sys.executable, "-m", "benchflow_core.cli.main", "eval", "create", "-t", SKILLS / "benchflow/tasks"]
    env = {**os.environ, "BENCHFLOW_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [*map(str, argv), "-a", agent, "-e", "local", "--json"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["passed"], summary["scored"], summary["total"]) == (passed, 3, 3)


# --- the review's own programs -----------------------------------------------------------------------------


def run(script: str, *args: object) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(REVIEW / "scripts" / script), *map(str, args)]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


OFFERS = {
    "pi": "<available_skills>\n <skill>\n <name>edit-pdf</name>\n <location>/x/y.md</location>",
    "claude": "The following skills are available for use with the Skill tool:\n\n- edit-pdf: Edits PDFs.\n- other: Does.\n",
    "codex": "### Available skills\n- edit-pdf: Edits PDFs. (file: /root/.agents/skills/edit-pdf/SKILL.md)\n",
    "path": "Read /root/.agents/skills/edit-pdf/SKILL.md first.",
}
CALLS = {
    "messages": {"content": [{"type": "tool_use", "name": "Skill", "input": {"skill": "edit-pdf"}}]},
    "chat": {
        "choices": [{"message": {"tool_calls": [{"function": {"name": "skill", "arguments": '{"name": "edit-pdf"}'}}]}}]
    },
    "gemini": {
        "candidates": [
            {"content": {"parts": [{"functionCall": {"name": "activate_skill", "args": {"name": "edit-pdf"}}}]}}
        ]
    },
}


def trajectory(tmp_path: Path, text: str, answer: object = None) -> Path:
    path = tmp_path / "llm_trajectory.jsonl"
    path.write_text(json.dumps({"request": {"body": {"system": text}}, "response": {"body": answer}}) + "\n")
    return path


@pytest.mark.parametrize("how", OFFERS)
def test_a_skill_that_is_offered_is_seen(tmp_path, how):
    done = run("extract_harness_skills.py", trajectory(tmp_path, OFFERS[how]), "--task-skill", "edit-pdf")
    assert done.returncode == 0 and "task_skills_loading: 1\n" in done.stdout, done.stdout


@pytest.mark.parametrize("wire", CALLS)
def test_a_skill_that_is_called_is_seen(tmp_path, wire):
    path = trajectory(tmp_path, "nothing", CALLS[wire])
    found = json.loads(run("extract_harness_skills.py", path, "--task-skill", "edit-pdf", "--json").stdout)
    assert (found["task_skills"], found["task_skills_loading"], found["skill_calls"]) == (["edit-pdf"], 1, 1)


def test_others_are_no_leak(tmp_path):
    text = (
        f"{OFFERS['claude'].replace('edit-pdf', 'built-in')} Please edit-pdf files.\n\nSteps:\n- edit-pdf: no skill\n"
    )
    done = run("extract_harness_skills.py", trajectory(tmp_path, text), "--task-skill", "edit-pdf")
    assert "task_skills_loading: 0\n" in done.stdout and "harness_skills: built-in, other\n" in done.stdout
    assert run("extract_harness_skills.py", tmp_path / "none").returncode == 2


def rollout(tmp_path: Path, *events: tuple[str, dict], **result: object) -> Path:
    folder = tmp_path / "jobs/j/r"
    (folder / "trajectory").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "trajectory/acp_trajectory.jsonl").write_text("")
    lines = [json.dumps({"seq": n, "kind": kind, "data": data}) for n, (kind, data) in enumerate(events)]
    (folder / "events.jsonl").write_text("\n".join(lines))
    (folder / "result.json").write_text(json.dumps({"rewards": {"reward": 1.0}, **result}))
    return tmp_path / "jobs"


TURN, VERIFY = ("turn_finished", {}), ("phase_started", {"phase": "verify"})


@pytest.mark.parametrize(
    ("events", "result", "said"),
    [
        ([TURN, VERIFY], {}, None),
        ([TURN, VERIFY], {"flags": ["contended"]}, None),
        ([VERIFY, TURN], {}, "the verifier began before the agent had ended"),
        (
            [TURN],
            {"rewards": None, "error": "no box", "error_info": {"kind": "infrastructure", "code": "x"}},
            "unscored",
        ),
        ([TURN], {"flags": ["agent-timeout"]}, "flagged: agent-timeout"),
        ([("tool_call", {"rawInput": {"command": "cat /tests/test.sh"}})], {}, "read event 0: the agent named /tests/"),
        ([TURN, ("x", {"text": "uses edit-pdf"})], {"skill_mode": "no-skill"}, "skill 'edit-pdf' is in the trajectory"),
        ([TURN], {"skill_mode": "with-skill"}, "skill 'edit-pdf' is not in the trajectory"),
    ],
)
def test_what_is_wrong_with_a_rollout(tmp_path, events, result, said):
    done = run("audit_batch.py", rollout(tmp_path, *events, **result), "--task-skill", "edit-pdf")
    assert done.returncode == (1 if said else 0), done.stdout
    assert (said or "1 of 1 rollouts are healthy") in done.stdout
