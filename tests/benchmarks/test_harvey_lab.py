"""Harvey LAB, on two tasks of our own in its layout; the judge is the local model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

HOME = Path(__file__).parents[2] / "benchmarks/harvey-lab"
LEASE = "real-estate-summarize-lease"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The sample, with what the judge is to say of a criterion in it: of C-002 that it fails."""
    root = shutil.copytree(HOME / "sample", tmp_path / "harvey-labs")
    for file in root.rglob("task.json"):
        data = json.loads(file.read_text())
        for one in data["criteria"]:
            one["match_criteria"] += " [[fake:no]]" if one["id"] == "C-002" else " [[fake:yes]]"
        file.write_text(json.dumps(data))
    return root


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A script of the benchmark's, or `bench`, in an empty folder and without anybody's keys."""
    kept = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY") and not k.startswith("BENCHFLOW_")}
    own = {
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / ".cache"),
        "BENCHFLOW_CACHE": str(tmp_path / "cache"),
    }

    def start(what: str, *args: object, more: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        program = ["-m", "benchflow_core.cli.main"] if what == "bench" else [str(HOME / what)]
        argv = [sys.executable, *program, *map(str, args)]
        env = {**kept, **own, "NO_COLOR": "1", **(more or {})}
        return subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200, check=False)

    return start


@pytest.fixture
def judge(local_model: Any) -> dict[str, str]:
    local_model.script("yes", ['{"verdict": "pass", "reasoning": "it is there"}'])
    local_model.script("no", ['{"verdict": "fail", "reasoning": "it is not"}'])
    return {"OPENAI_API_KEY": "sk-judge", "OPENAI_BASE_URL": f"{local_model.base_url}/v1"}


def test_a_converted_task_is_run_and_scored_criterion_by_criterion(
    clone: Path, run: Run, judge: dict[str, str], tmp_path: Path, local_model: Any
) -> None:
    options = ("--judge", "openai/some-judge", "--scoring", "proportional", "--bare")
    done = run("benchflow.py", "--harvey-root", clone, "--output-dir", "tasks", *options)
    assert done.returncode == 0 and "2 tasks with 5 criteria" in done.stdout, done.stderr
    checked = run("bench", "tasks", "check", "tasks")
    assert checked.returncode == 0 and f"{LEASE}: ok" in checked.stdout, checked.stdout
    script = "- run: grep -h Rent documents/lease.md >output/memo.docx; find /workspace /tests -name 'rubric*'"
    argv = ("eval", "create", "-t", f"tasks/{LEASE}", "-a", "scripted", "-e", "local", "--job-name", "job")
    argv = (*argv, "--agent-option", f"script={script}")
    no_key = run("bench", *argv)
    assert no_key.returncode == 1 and "OPENAI_API_KEY" in no_key.stderr and not (tmp_path / "jobs").exists()
    done = run("bench", *argv, more=judge)
    [file] = (tmp_path / "jobs/job").glob("*/result.json")
    result = json.loads(file.read_text())
    assert result["rewards"] == pytest.approx({"reward": 2 / 3, "pass_rate": 2 / 3}), (done.stderr, result)
    assert [(test["name"][:5], test["status"], test["message"]) for test in result["tests"]] == [
        ("C-001", "passed", "it is there"),
        ("C-002", "failed", "it is not"),
        ("C-003", "passed", "it is there"),
    ]
    spent = result["agent_result"]["usage_details"]["gateway"]["judge"]
    assert spent["requests"] == 3 and spent["input_tokens"] > 300, "every question counts, asked at once or not"
    assert "/rubric.json" not in (file.parent / "events.jsonl").read_text(), "the agent's box has no rubric"
    assert "cannot be read" in str(local_model.log[0].body), "a file of text is no .docx, whatever it is called"


def test_parity_of_every_task(clone: Path, run: Run, tmp_path: Path) -> None:
    done = run("parity_test.py", "--mode", "full", "--harvey-root", clone, "--output", "found.json")
    found = json.loads((tmp_path / "found.json").read_text())
    assert done.returncode == 0 and (found["tasks"], found["criteria"], found["documents"]) == (2, 5, 4), done.stderr
    (clone / "tasks/real-estate/summarize-lease/documents/more").symlink_to("/etc/passwd")
    linked = run("parity_test.py", "--mode", "full", "--harvey-root", clone)
    assert linked.returncode == 1 and "is a link" in linked.stderr and len(linked.stderr.splitlines()) == 1
    none = run("parity_test.py", "--mode", "full", "--harvey-root", tmp_path / "nowhere")
    assert none.returncode == 1 and "is it a clone of harveyai/harvey-labs?" in none.stderr


@pytest.mark.parametrize("mode", ["eval-parity", "side-by-side"])
def test_without_a_key_there_is_one_clear_line(run: Run, mode: str) -> None:
    done = run("parity_test.py", "--mode", mode)
    assert done.returncode == 1 and done.stdout == "" and len(done.stderr.splitlines()) == 1
    assert f"{mode} asks a model: set one of ANTHROPIC_API_KEY" in done.stderr


def test_both_ways_of_judging_see_the_same_and_say_the_same(
    clone: Path, run: Run, judge: dict[str, str], local_model: Any
) -> None:
    argv = ("--mode", "eval-parity", "--harvey-root", clone, "--judge", "openai/some-judge", "--bench", "-e", "local")
    done = run("parity_test.py", *argv, more=judge)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["criteria"], found["same"], found["agree"]) == (10, 10, True)
    # The local model goes by the last mark it is shown: with work that quotes a criterion to pass it is the work's.
    assert {(row["work"], row["original_score"], row["score"]) for row in found["rows"]} == {
        ("half", 1.0, 1.0),
        ("none", 0.0, 0.0),
    }
    asked = [str(one.body) for one in local_model.log]
    assert len(asked) == 20
    # C-001 is in the work that meets half: once as the criterion and once as the work, in a .docx or .xlsx of ours too.
    assert sum(body.count("24,000 a year, rising") == 2 for body in asked) == 2
    assert sum(body.count("a row for the supply agreement") == 2 for body in asked) == 2


def test_two_agents_side_by_side(clone: Path, run: Run, judge: dict[str, str]) -> None:
    argv = ("--mode", "side-by-side", "--harvey-root", clone, "--judge", "openai/some-judge", "--model", "", "--bare")
    argv = (*argv, "--include", LEASE)
    done = run("parity_test.py", *argv, "--agents", "nop", "oracle", "--bench", "-e", "local", more=judge)
    found = json.loads(done.stdout)
    assert done.returncode == 1 and not found["complete"], "there is no reference solution to play"
    assert found["rows"] == [{"task": LEASE, "nop": pytest.approx(2 / 3), "oracle": None}]
    says = ("--agent-env", "BENCHFLOW_SCRIPT=- say: nothing")
    done = run("parity_test.py", *argv, "--agents", "nop", "scripted", "--bench", "-e", "local", *says, more=judge)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["mean"] == pytest.approx({"nop": 2 / 3, "scripted": 2 / 3})


def test_what_is_recorded_is_what_the_sample_is() -> None:
    told = yaml.safe_load((HOME / "benchmark.yaml").read_text())
    recorded = json.loads((HOME / "parity_experiment.json").read_text())
    assert told["verification"]["method"] == "llm-as-judge" and told["parity"]["real_data_set"] == "not run"
    assert all(run["source"] == "sample/" for run in recorded["runs"])
    assert told["parity"]["modes"] == [run["mode"] for run in recorded["runs"]]
