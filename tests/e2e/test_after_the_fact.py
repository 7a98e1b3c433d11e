"""Looking at finished jobs: list, show, metrics, compare, export, import; from the command line and from Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def made(tmp_path_factory, cache, name, examples):
    """One job whose every rollout passes, one whose none does."""
    root = tmp_path_factory.mktemp("made")
    for agent in ("oracle", "nop"):
        command = [sys.executable, "-m", "benchflow_core.cli.main", "eval", "create", "-t", examples, "--include", "h*"]
        command += ["-a", name(agent), "-e", name("local"), "-o", root / "jobs", "--job-name", agent]
        env = {**os.environ, "BENCHFLOW_CACHE": str(cache), "HOME": str(root)}
        subprocess.run(list(map(str, command)), env=env, check=True, timeout=120, capture_output=True)
    return root / "jobs"


@pytest.fixture
def jobs(made, tmp_path):
    return shutil.copytree(made, tmp_path / "jobs")


def test_list_and_metrics_say_what_the_files_say(bench, name, jobs):
    listed = {job["job_name"]: job for job in bench("eval", "list", "--json").json}
    assert {key: (job["passed"], job["total"], job["status"]) for key, job in listed.items()} == {
        "oracle": (2, 2, "finished"),
        "nop": (0, 2, "finished"),
    }
    assert "100.0%" in bench("eval", "list", "jobs").out
    both = bench("eval", "metrics", "jobs", "--json").json
    assert both["passed"] == 2 and both["total"] == 4 and both["score"] is None
    assert both["arms"][name("oracle")]["score_interval"][0] > 0 and both["arms"][name("nop")]["score"] == "0.0%"
    assert "Scores of 2 arms, coverage 4/4" in bench("eval", "metrics", "jobs").out
    one = bench("metrics", "jobs", "--agent", name("nop"), "--bootstrap", "200", "--json").json
    assert one["passed"] == 0 and one["bootstrap"]["seed"] == 0
    gone = next((jobs / "oracle").glob("hello-file__*"))
    shutil.rmtree(gone)
    again = bench("eval", "metrics", "jobs/oracle", "--json").json
    assert (again["passed"], again["total"], again["unscored_by_kind"]) == (1, 2, {"not-run": 1})
    (jobs / "oracle" / "summary.json").unlink()
    assert "unfinished" in bench("eval", "list", "jobs").out


def test_show_a_job_and_a_rollout(bench, name, jobs):
    job = bench("eval", "show", "nop")
    assert job.code == 0, job.err
    assert "0/2 (0.0%)" in job.out and "coverage 2/2" in job.out and "hello-file__" in job.out
    assert bench("eval", "show", "jobs/nop", "--json").json["rollouts"][0]["task_name"] == "hello-doc"
    rollout = next((jobs / "nop").glob("hello-file__*"))
    shown = bench("eval", "show", rollout)
    assert "hello-file: failed, reward 0" in shown.out and "verifier isolation fresh" in shown.out
    assert bench("eval", "show", rollout, "--json").json["rewards"] == {"reward": 0.0}
    assert bench("eval", "show").code == 0
    missing = bench("eval", "show", "npo")
    assert missing.code == 1 and "Did you mean nop" in missing.err


def test_compare_names_what_differs(bench, name, jobs):
    done = bench("eval", "compare", "nop", "oracle", "--json")
    assert done.code == 0, done.err
    (one,) = done.json["comparisons"]
    assert one["better"] == 2 and one["outcome"] == "undecided", "two tasks cannot show anything"
    assert {
        "field": "agent",
        "base": [name("nop")],
        "other": [name("oracle")],
        "treatment": True,
        "blocks": False,
    } in one["different"]
    text = bench("eval", "compare", "nop", "oracle").out
    assert f"compared: agent: {name('nop')} → {name('oracle')}" in text
    config = next((jobs / "nop").glob("hello-file__*")) / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "timeout_sec": 5}))
    assert "differs too: timeout_sec" in bench("eval", "compare", "nop", "oracle").out
    assert "allowed: timeout_sec" in bench("eval", "compare", "nop", "oracle", "--allow-different", "timeout_sec").out
    wrong = bench("eval", "compare", "nop", "oracle", "--allow-different", "timeout")
    assert wrong.code == 2 and "These do:" in wrong.err


def test_a_bundle_for_a_colleague(bench, env, jobs, tmp_path):
    log = next((jobs / "oracle").glob("hello-file__*")) / "agent" / "seen.txt"
    log.write_text("the key is tell-nobody-12345")
    secret = {"MY_API_KEY": "tell-nobody-12345"}
    done = bench("eval", "export", "oracle", "--bundle", "job.zip", "--json", more=secret)
    assert done.code == 0, done.err
    read = bench("eval", "import", "job.zip", "-o", "theirs", "--json")
    assert read.code == 0 and read.json["digest"] == done.json["digest"]
    assert bench("eval", "metrics", "theirs", "--json").json["passed"] == 2
    everything = b"".join(p.read_bytes() for p in (tmp_path / "theirs").rglob("*") if p.is_file())
    assert b"tell-nobody" not in everything and str(tmp_path / "home").encode() not in everything
    assert "already exists" in bench("eval", "import", "job.zip", "-o", "theirs").err
    assert bench("eval", "export", "oracle").code == 2
    assert bench("eval", "export", "--list").code == 0


def test_rows_for_notebooks(jobs, tmp_path, cache, monkeypatch):
    import benchflow as bf

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCHFLOW_CACHE", str(cache))
    found = bf.results("jobs")
    assert len(found) == 4 and {row["outcome"] for row in found} == {"passed", "failed"}
    assert found.metrics().result.passed == 2
    row = next(row for row in found if row["job"] == "oracle" and row["task_name"] == "hello-file")
    assert row["reward"] == 1.0 and row["total_tokens"] is None and row["seconds_total"] > 0


def test_a_job_runs_and_counts_without_the_commands_that_read_results(bench, examples, name, tmp_path):
    task = ["-t", examples / "hello-file", "-a", name("oracle"), "-e", name("local"), "--job-name", "alone"]
    done = bench("-p", "no:benchflow-command-results", "eval", "create", *task)
    assert done.code == 0 and "✓ Score: 1/1 (100.0%), 95 % interval" in done.out, done.err
    summary = json.loads((tmp_path / "jobs/alone/summary.json").read_text())
    assert summary["score_interval"] and "pass_at_k" not in summary
    assert "pass_at_k" in bench("eval", "show", "alone", "--json").json
    (tmp_path / "broken/benchflow_command_results").mkdir(parents=True)
    (tmp_path / "broken/benchflow_command_results/__init__.py").write_text("raise ImportError('it is broken')")
    broken = bench("eval", "create", *task[:-1], "second", more={"PYTHONPATH": str(tmp_path / "broken")})
    assert broken.code == 0 and "✓ Score: 1/1 (100.0%), 95 % interval" in broken.out, broken.err
    blocked = bench("-p", "no:benchflow-command-results", "eval", "score", "alone")
    assert blocked.code == 1 and "reading results comes with benchflow-command-results. Blocked: " in blocked.err


EDITS = {
    "unknown": ("config", "agnet", "x", "has no 'agnet'"),
    "number": ("config", "trials", "two", "'trials' must be a whole number, not 'two'"),
    "text": ("config", "sandbox", 7, "'sandbox' must be text, not 7"),
    "executor": ("config", "executor", "nosuch", "Unknown executor 'nosuch'"),
    "outside": (None, "items", [{"rollout": "../../evil"}], "'../../evil' is not the name of a rollout"),
    "nothing": (None, "items", [], "it names no rollout"),
    "no tasks": (None, "tasks", {}, "is of no task of this job"),
    "no list": (None, "items", None, "'items' a list"),
}


def test_a_job_file_that_was_edited_is_refused_in_one_line(bench, examples, name, tmp_path):
    done = bench("eval", "create", "-t", examples / "hello-file", "-a", name("oracle"), "-e", name("local"))
    assert done.code == 0, done.err
    (file,) = (tmp_path / "jobs").glob("*/job.json")
    right = file.read_text()
    for part, key, value, said in EDITS.values():
        job = json.loads(right)
        (job[part] if part else job)[key] = value
        file.write_text(json.dumps(job))
        again = bench("eval", "resume", file.parent)
        assert again.code == 1 and said in again.err and len(again.err.splitlines()) == 1, (said, again.err)
    assert not (tmp_path / "evil").exists() and not (tmp_path.parent / "evil").exists()
    file.write_text(right)
    assert bench("eval", "resume", file.parent, "--fail-under", "1").code == 0
    assert bench("eval", "resume", file.parent, "--fail-under", "nan").code == 2
    assert bench("eval", "resume", file.parent, "--fail-under", "50").code == 2
