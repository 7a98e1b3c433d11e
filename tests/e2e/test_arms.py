"""A job with several arms has a score per arm, everywhere: nothing adds the arms up, and each line names its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def made(tmp_path_factory, cache, name, examples):
    """The reference solution first, which the alphabet would not do."""
    root = tmp_path_factory.mktemp("made")
    arms = f"{name('oracle')},{name('nop')}"
    command = [sys.executable, "-m", "benchflow_core.cli.main", "eval", "create", "-t", examples, "--include", "h*"]
    command += ["-a", arms, "-e", name("local"), "-o", root / "jobs", "--job-name", "both", "--concurrency", "1"]
    env = {**os.environ, "BENCHFLOW_CACHE": str(cache), "HOME": str(root)}
    done = subprocess.run(list(map(str, command)), env=env, timeout=300, capture_output=True, text=True, check=True)
    return root / "jobs", done


@pytest.fixture
def job(made, tmp_path):
    shutil.copytree(made[0], tmp_path / "jobs")
    return made[1]


def test_the_headline_is_a_score_per_arm(job, name):
    oracle, nop = name("oracle"), name("nop")
    lines = job.stdout.splitlines()
    assert any("Scores of 2 arms, coverage 4/4" in line for line in lines)
    scores = [line.strip() for line in lines if "95 % interval" in line]
    assert [line.split(" (")[0] for line in scores] == [f"{oracle}: 2/2", f"{nop}: 0/2"]
    failures = [line for line in lines if line.startswith("✗")]
    assert len(failures) == 2 and all(f"[{nop}]:" in line for line in failures)
    assert "2/4" not in job.stdout + job.stderr.replace("[2/4]", "")


def test_results_have_no_score_over_all_arms(job, name, bench, tmp_path):
    oracle, nop = name("oracle"), name("nop")
    summary = json.loads((tmp_path / "jobs/both/summary.json").read_text())
    assert (summary["agent"], summary["total"], summary["coverage"]) == (f"{oracle}, {nop}", 4, 1.0)
    for key in ("score", "score_ratio", "score_bounds", "score_interval", "score_error", "mean_reward"):
        assert summary[key] is None, key
    assert {arm: one["score"] for arm, one in summary["arms"].items()} == {oracle: "100.0%", nop: "0.0%"}
    assert list(summary["arms"]) == [oracle, nop]
    shown = bench("eval", "show", "both", "--all").out
    assert f"Job both: {oracle}, {nop}" in shown and "ARM" in shown
    assert all(
        arm in line
        for line in shown.splitlines()
        if "passed" in line or "failed" in line
        for arm in [oracle if "passed" in line else nop]
    )
    listed = bench("eval", "list", "jobs").out
    assert "2/2" in listed and "0/2" in listed and "2/4" not in listed
    assert "2/4" not in bench("eval", "metrics", "jobs").out


def test_the_first_arm_as_given_is_the_base(job, name, bench):
    (one,) = bench("eval", "compare", "both", "--json").json["comparisons"]
    assert (one["base"], one["other"]) == (name("oracle"), name("nop"))


def test_a_threshold_holds_for_every_arm(bench, name, examples):
    arms = f"{name('oracle')},{name('nop')}"
    done = bench(
        "eval", "create", "-t", examples / "hello-file", "-a", arms, "-e", name("local"), "--fail-under", "0.4"
    )
    assert done.code == 1 and "2 arms" in done.out


def test_a_job_of_two_agents_names_both(bench, name, examples, tmp_path):
    roles = [{"name": "writer", "agent": name("oracle")}, {"name": "reader", "agent": name("nop")}]
    scene = {"name": "one", "roles": roles, "turns": [{"role": "writer"}, {"role": "reader"}]}
    settings = {"scenes": [scene], "sandbox": name("local"), "tasks_dir": str(examples / "hello-file")}
    (tmp_path / "job.yaml").write_text(json.dumps(settings))
    done = bench("eval", "create", "--config", "job.yaml", "-o", "jobs", "--job-name", "team", timeout=300)
    assert done.code == 0, done.err
    both = f"{name('oracle')}, {name('nop')}"
    assert json.loads((tmp_path / "jobs/team/summary.json").read_text())["agent"] == both
    assert bench("eval", "list", "jobs", "--json").json[0]["agent"] == both
    assert f"Job team: {both}" in bench("eval", "show", "team").out
    assert bench("eval", "metrics", "jobs", "--agent", name("nop"), "--json").json["total"] == 1
