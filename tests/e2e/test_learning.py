"""Rollouts that learn from each other: one after the other, over one store, whatever interrupts them."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time

import pytest
from benchflow_feature_standard.learning.store import LEARNER_FILE, LearnerStore

from benchflow_core.evaluation.joblock import JobLock

LEARN = """
[ "$(ls /learner/memory | wc -l)" = "$(ls ~/.agents/skills | wc -l)" ] || exit 9
n=$(ls /learner/memory | wc -l)
echo "seen $(cat name.txt)" > /learner/memory/$n.md
mkdir -p ~/.agents/skills/greet-$n && echo "$n" > ~/.agents/skills/greet-$n/SKILL.md
[ "$(cat name.txt)" = Bob ] || echo "Hello, $(cat name.txt)!" > hello.txt
"""


@pytest.fixture
def job(examples, name, tmp_path):
    for task, person in {"a": "Ada", "b": "Bob", "c": "Cleo", "d": "Dora"}.items():
        folder = shutil.copytree(examples / "hello-file", tmp_path / "tasks" / task)
        (folder / "environment/name.txt").write_text(f"{person}\n")
        test = folder / "tests/test.sh"
        test.write_text(test.read_text().replace("Ada", person))
    config = {
        "tasks_dir": "tasks",
        "agent": name("scripted"),
        "environment": name("local"),
        "job_mode": "sequential-shared",
        "concurrency": 3,
        "agent_options": {"script": json.dumps([{"run": LEARN}])},
    }
    (tmp_path / "job.yaml").write_text(json.dumps(config))
    return "eval", "create", "--config", "job.yaml", "--job-name", "j"


def story(job_dir):
    """What the store says happened, without what differs from run to run."""
    store = LearnerStore.read(job_dir)
    steps = [(s.task, s.reward, s.verdict, s.began, s.generation, dict(s.changes)) for s in store.steps]
    return steps, [g.digest for g in store.generations], store.head


def test_each_rollout_starts_from_what_was_learned(bench, job, tmp_path):
    done = bench(*job, "--json")
    assert done.code == 0, done.err
    assert "concurrency is ignored" in done.err
    steps, digests, _ = story(tmp_path / "jobs/j")
    assert [(s[0], s[1], s[2], s[4]) for s in steps] == [
        ("a", 1.0, "stamped", 1),
        ("b", 0.0, "reverted", 1),
        ("c", 1.0, "stamped", 2),
        ("d", 1.0, "stamped", 3),
    ]
    assert steps[1][5] == {"memory/1.md": "added", "skills/greet-1/SKILL.md": "added"}
    store = LearnerStore.read(tmp_path / "jobs/j")
    notes = {p.name: p.read_text() for p in (store.current / "memory").iterdir()}
    assert notes == {"0.md": "seen Ada\n", "1.md": "seen Cleo\n", "2.md": "seen Dora\n"}, "Bob's is gone"
    summary = json.loads((tmp_path / "jobs/j/summary.json").read_text())
    assert summary["learner"] == {"generations": 4, "generation": 3, "best": 1.0}
    assert "seen Ada" not in "".join(p.read_text() for p in (tmp_path / "jobs/j").glob("*/prompts.json"))
    locks = [json.loads(p.read_text())["learner"] for p in sorted((tmp_path / "jobs/j").glob("*/lock.json"))]
    assert [lock["generation"] for lock in locks] == [0, 1, 1, 2] and locks[3]["digest"] == digests[2]

    log = bench("learner", "log", "j", "--json").json
    assert (log["head"], log["best"], len(log["steps"])) == (3, 1.0, 4)
    assert "reverted" in bench("learner", "log", "j").out
    assert "+seen Dora" in bench("learner", "diff", "j").out
    assert bench("learner", "diff", "j", "0", "1", "--json").json["changes"]["memory/0.md"] == "added"
    assert bench("learner", "curve", "j", "--to", "curve.svg").code == 0
    assert (tmp_path / "curve.svg").read_text() == (tmp_path / "jobs/j/learning_curve.svg").read_text()
    assert bench("learner", "restore", "j", "1", "--json").json == {"generation": 1, "was": 3, "best": 1.0}
    extended = bench("eval", "extend", "jobs/j", "--trials", "2")
    assert extended.code == 0, extended.err
    after = story(tmp_path / "jobs/j")[0][5:]
    assert [(s[0], s[3], s[4]) for s in after] == [("a", 1, 4), ("b", 4, 4), ("c", 4, 5), ("d", 5, 6)]
    wrong = bench("learner", "restore", "j", "77")
    assert wrong.code == 1 and "There are 0 to 6" in wrong.err
    lock = JobLock(tmp_path / "jobs/j")  # as the process of a running job holds it
    busy = bench("learner", "restore", "j", "0")
    lock.release()
    assert busy.code == 1 and "is being run by process" in busy.err, busy.err
    assert LearnerStore.read(tmp_path / "jobs/j").head == 6


def test_a_kill_after_any_rollout_loses_and_repeats_nothing(bench, job, tmp_path, env, command):
    """Killed for real once; the moments in between, which no clock hits, are put on disk as a kill leaves them."""
    assert bench(*job).code == 0
    whole = story(tmp_path / "jobs/j")
    pristine = shutil.copytree(tmp_path / "jobs/j", tmp_path / "whole")
    names = [row["rollout"] for row in json.loads((pristine / "job.json").read_text())["items"]]
    for finished in range(1, len(names)):
        shutil.rmtree(tmp_path / "jobs/j")
        killed = shutil.copytree(pristine, tmp_path / "jobs/j")
        index = json.loads((killed / LEARNER_FILE).read_text())
        index["steps"] = index["steps"][: finished - 1]  # the last one ended, and was not offered any more
        index["head"] = index["steps"][-1]["generation"] if index["steps"] else 0
        index["generations"] = index["generations"][: index["head"] + 1]
        (killed / LEARNER_FILE).write_text(json.dumps(index))
        for name in names[finished:]:
            shutil.rmtree(killed / name)
        done = bench("eval", "resume", "jobs/j")
        assert done.code == 0, done.err
        assert story(killed) == whole, f"after {finished}"

    process = subprocess.Popen(
        [*command, *job[:-1], "k"], cwd=tmp_path, env=env, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    journal = tmp_path / "jobs/k/journal.jsonl"
    end = time.monotonic() + 60
    while time.monotonic() < end and not (journal.exists() and journal.read_text().count('"kind":"finished"') >= 2):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert bench("eval", "resume", "jobs/k").code == 0
    assert story(tmp_path / "jobs/k") == whole


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"matrix": {"skill_modes": ["no-skill", "self-gen"]}}, "cannot be compared"),
        ({"skill_mode": "self-gen"}, "is in its way"),
        ({"skills_dir": "tasks"}, "no skill in tasks"),
        ({"job_mode": "sequential"}, "'job_mode' must be 'parallel-independent' or 'sequential-shared'"),
    ],
)
def test_what_cannot_be_meant_is_refused(bench, job, tmp_path, more, why):
    config = json.loads((tmp_path / "job.yaml").read_text())
    (tmp_path / "job.yaml").write_text(json.dumps({**config, **more}))
    done = bench(*job)
    assert done.code == 1 and why in done.err and "Traceback" not in done.err, done.err
    assert not (tmp_path / "jobs/j/learner_store.json").exists()


def test_no_step_is_verified_with_what_was_learned_in_the_box(bench, job, examples, name, tmp_path):
    """It is there again for the next step, as the one before left it."""
    shutil.rmtree(tmp_path / "tasks")
    task = shutil.copytree(examples / "two-step-notes", tmp_path / "tasks" / "notes")
    for test in task.glob("steps/*/tests/test.sh"):
        unseen = "[ ! -e /learner ] && [ ! -e ~/.agents/skills ]"
        test.write_text(f"#!/bin/sh\n{unseen} && echo 1 > /logs/verifier/reward.txt\n")
    learn = "ls /learner/memory | wc -l > /learner/memory/$(ls /learner/memory | wc -l).md"
    config = json.loads((tmp_path / "job.yaml").read_text())
    script = {"turns": [[{"run": learn}]] * 2}
    (tmp_path / "job.yaml").write_text(json.dumps({**config, "agent_options": {"script": json.dumps(script)}}))
    done = bench(*job)
    assert done.code == 0, done.out + done.err
    steps, _, _ = story(tmp_path / "jobs/j")
    assert [(step[1], step[2]) for step in steps] == [(1.0, "stamped")]
    assert steps[0][5] == {"memory/0.md": "added", "memory/1.md": "added"}


def test_a_store_may_begin_with_skills(bench, job, tmp_path):
    skill = tmp_path / "mine/greeting"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: greeting\n---\nGreet.\n")
    config = json.loads((tmp_path / "job.yaml").read_text())
    config["agent_options"]["script"] = json.dumps(
        [{"run": "cat ~/.agents/skills/greeting/SKILL.md && cp -r /app/name.txt /learner/memory/"}]
    )
    (tmp_path / "job.yaml").write_text(json.dumps({**config, "skills_dir": "mine", "include": ["a"]}))
    done = bench(*job)
    assert done.code == 0, done.err
    steps, _, _ = story(tmp_path / "jobs/j")
    assert steps[0][2:] == ("stamped", 0, 1, {"memory/name.txt": "added"})
