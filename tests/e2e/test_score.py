"""`--keep-state` and `bench eval score`: verify again what an agent left, without the agent."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

TEST = """#!/bin/sh
# The verifier of a moment: it wants what is written here.
grep -q '{want}' /app/answer.txt && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt
"""


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def leases(env, tmp_path, monkeypatch):
    """Leases of this test alone, and how many there are."""
    env["XDG_CACHE_HOME"] = str(tmp_path / "leases")
    return lambda: list((tmp_path / "leases").rglob("leases/*.json"))


@pytest.fixture
def task(examples, tmp_path) -> Path:
    copy = shutil.copytree(examples / "hello-file", tmp_path / "task")
    (copy / "tests" / "test.sh").write_text(TEST.format(want="one"))
    return copy


@pytest.fixture
def run(bench, name, task):
    """Run an agent that writes an answer and leaves."""

    def go(*more, answer="one", job="j"):
        script = f'script=[{{run: "echo {answer} > /app/answer.txt"}}]'
        given = ["-t", task, "-a", name("scripted"), "--agent-option", script, "-e", name("local"), "--job-name", job]
        done = bench("eval", "create", *given, *more)
        assert done.code == 0, done.err
        return done

    return go


def rollout(tmp_path: Path, job: str = "j") -> Path:
    (found,) = [p.parent for p in (tmp_path / "jobs" / job).glob("*/result.json")]
    return found


def result(folder: Path) -> dict:
    return json.loads((folder / "result.json").read_text())


def test_the_same_state_gives_the_same_verdict_and_both_are_kept(bench, run, leases, tmp_path):
    run("--keep-state", "all")
    folder = rollout(tmp_path)
    events = (folder / "events.jsonl").read_bytes()
    done = bench("eval", "score", "j", "--json")
    assert done.code == 0, done.err
    (one,) = done.json["rollouts"]
    assert one["before"] == one["after"] == {"reward": 1.0} and one["verdict"] == 2
    assert result(folder)["verdict"]["number"] == 2 and result(folder)["verifier_isolation"] == "fresh"
    for number in (1, 2):
        assert json.loads((folder / f"verdicts/{number}.json").read_text())["rewards"] == {"reward": 1.0}
    assert (folder / "verdicts/2/verifier/reward.txt").is_file()
    assert (folder / "events.jsonl").read_bytes() == events, "the agent did not run again"
    assert bench("eval", "metrics", "jobs", "--json").json["total"] == 1, "a verdict is not a rollout"


def test_a_mended_verifier_needs_leave_and_is_on_record(bench, run, task, leases, tmp_path):
    run("--keep-state", "failed", answer="two")
    folder = rollout(tmp_path)
    assert result(folder)["rewards"] == {"reward": 0.0} and (folder / "state.json").is_file()
    before = result(folder)["task_digest"]
    (task / "tests" / "test.sh").write_text(TEST.format(want="two"))
    refused = bench("eval", "score", "j")
    assert refused.code == 1 and "the task was changed" in refused.err
    assert result(folder)["rewards"] == {"reward": 0.0}
    done = bench("eval", "score", folder, "--allow-drift")
    assert done.code == 0, done.err
    assert "reward 0 → reward 1" in done.err
    now = result(folder)
    assert now["rewards"] == {"reward": 1.0} and now["task_digest"] == before != now["verdict"]["task_digest"]
    assert json.loads((tmp_path / "jobs/j/summary.json").read_text())["passed"] == 1
    back = bench("eval", "score", "j", "--use", "1", "--json")
    assert back.code == 0 and result(folder)["rewards"] == {"reward": 0.0}
    assert json.loads((tmp_path / "jobs/j/summary.json").read_text())["passed"] == 0


def test_a_verifier_that_fails_now_does_not_take_a_score_away(bench, run, task, leases, tmp_path):
    run("--keep-state", "all")
    (task / "tests" / "test.sh").write_text("#!/bin/sh\nexit 3\n")
    done = bench("eval", "score", "j", "--allow-drift")
    folder = rollout(tmp_path)
    assert done.code == 1 and "verdict 1 stands" in done.err
    assert result(folder)["rewards"] == {"reward": 1.0}
    assert json.loads((folder / "verdicts/2.json").read_text())["verifier_error"]


def test_without_a_state_each_rollout_says_so_in_one_line(bench, run, tmp_path):
    run()
    done = bench("eval", "score", "j")
    assert done.code == 1
    assert [line for line in done.err.splitlines() if "no state was kept" in line and "--keep-state" in line]
    assert not (rollout(tmp_path) / "verdicts").exists()


def test_what_passed_is_not_kept_by_failed_and_nothing_is_left(bench, run, leases, tmp_path):
    run("--keep-state", "failed")
    assert not (rollout(tmp_path) / "state.json").exists()
    assert leases() == []
    assert list((tmp_path / "cache" / "states").iterdir()) == []


def test_kept_states_outlive_a_cleanup_until_their_rollout_is_deleted(bench, run, leases, tmp_path):
    run("--keep-state", "all")
    assert len(leases()) == 1
    assert bench("cleanup").code == 0
    assert bench("eval", "score", "j").code == 0
    (tmp_path / "jobs" / "j").rename(tmp_path / "moved")
    assert bench("eval", "score", "moved").code == 0
    assert bench("cleanup").code == 0
    assert len(leases()) == 1, "it is known where it lies now"
    shutil.rmtree(tmp_path / "moved")
    assert bench("cleanup").code == 0
    assert leases() == []


def test_every_step_of_a_task_is_verified_again(bench, name, examples, leases, tmp_path):
    args = ["-t", examples / "two-step-notes", "-a", name("oracle"), "--job-name", "j", "--keep-state", "all"]
    assert bench("eval", "create", *args, "-e", name("local")).code == 0
    done = bench("eval", "score", "j", "--json")
    assert done.code == 0, done.err
    now = result(rollout(tmp_path))
    assert now["rewards"]["reward"] == 1 and len(now["step_results"]) == 2
    assert (rollout(tmp_path) / "verdicts/2/steps").is_dir()


def test_run_now_and_score_later(bench, run, leases, tmp_path):
    run("--keep-state", "all", "--no-verify")
    assert result(rollout(tmp_path))["rewards"] is None
    done = bench("eval", "score", "j")
    assert done.code == 0 and "unscored → reward 1" in done.err
    assert result(rollout(tmp_path))["rewards"] == {"reward": 1.0}


def test_under_another_isolation(bench, run, leases, tmp_path):
    run("--keep-state", "all")
    done = bench("eval", "score", "j", "--isolation", "shared")
    assert done.code == 0, done.err
    now = result(rollout(tmp_path))
    assert now["verifier_isolation"] == "shared" and now["rewards"] == {"reward": 1.0}


def test_processes_that_ran_are_missed_aloud(bench, name, examples, leases, tmp_path):
    task = examples / "tiny-http-server"
    args = ["-t", task, "-a", name("scripted"), "--agent-option", f"script={task}/scripted/solve.yaml"]
    assert bench("eval", "create", *args, "-e", name("local"), "--job-name", "j", "--keep-state", "all").code == 0
    assert result(rollout(tmp_path))["rewards"] == {"reward": 1.0}
    bench("eval", "score", "j")
    findings = result(rollout(tmp_path))["findings"]
    assert [f["code"] for f in findings if f["code"] == "live-state-not-carried"]


def test_a_state_that_is_gone_is_one_clear_line(bench, run, leases, tmp_path):
    run("--keep-state", "all")
    shutil.rmtree(tmp_path / "cache")
    done = bench("eval", "score", "j")
    assert done.code == 1 and "verdict 1 stands: its state was not kept on this machine" in done.err
    assert result(rollout(tmp_path))["rewards"] == {"reward": 1.0}
