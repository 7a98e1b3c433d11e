"""Files of results may come from anybody: one bad field is said in its row, and every other row is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchflow_command_results.compare_command import compare
from benchflow_command_results.overview import list_jobs, metrics
from benchflow_command_results.reader import Reader
from benchflow_command_results.show import show
from click.testing import CliRunner

from benchflow_core.cli.ui import Ui
from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation.stored import StoredFiles

BAD: list[Any] = ["local", 10**400, -1e308, True, [], ["x"], {}, {"x": {"y": []}}, [[1]]]
RESULT: dict[str, Any] = {
    "rewards": {"reward": 1.0},
    "timing": {"total": 1.5},
    "agent_result": {"total_tokens": 7, "cost_usd": 0.1},
    "roles": {"agent": {"agent": "agent", "model": "model"}},
    "flags": ["contended"],
    "notices": ["a note"],
    "findings": [{"code": "c", "path": "p", "action": "a", "why": "w"}],
    "tests": [{"name": "t", "status": "failed", "message": "m"}],
    "verdict": {"number": 1, "of": 2, "task_digest": "d"},
    "error": "late",
    "error_info": {"kind": "agent", "code": "agent_timeout", "retryable": False},
    "started_at": "2026-11-16T05:25:16+00:00",
}


def spoiled(value: Any) -> Iterator[Any]:
    """The value with one of its parts, at any depth, made something else."""
    parts: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        for bad in [*BAD, *spoiled(part)]:
            copy = value.copy()
            copy[key] = bad
            yield copy


def look(command: Any, *args: str, json_too: bool = True) -> str:
    found = ""
    for as_json in (False, True) if json_too else (False,):
        done = CliRunner().invoke(command, list(args), obj=Ui(json=as_json))
        assert done.exception is None or isinstance(done.exception, ConfigurationError), (args, repr(done.exception))
        found += done.output
    return found


def look_at_everything(job: Path) -> None:
    listed = look(list_jobs, str(job.parent))
    assert "good" in listed and job.name in listed
    look(show, str(job), "--all")
    look(show, str(next(job.glob("bad__*"))))
    look(metrics, str(job.parent))
    look(compare, str(job), str(job.parent / "good"))
    reader = Reader(StoredFiles())
    for folder in (job, job.parent / "good"):
        reader.job(folder).rows.copy()
        [reader.rollout(path) for path in folder.glob("*__*")]


@pytest.fixture
def job(make_job) -> Path:
    make_job("good", {"fine": [1.0], "bad": [1.0]})
    return make_job("torn", {"fine": [1.0], "bad": [1.0]})


def test_a_bad_field_is_named_in_its_row_and_the_others_are_shown(job):
    (file,) = job.glob("bad__*/result.json")
    result = json.loads(file.read_text())
    file.write_text(json.dumps({**result, "agent_result": {"total_tokens": "local"}}))
    shown = look(show, str(job))
    assert "'agent_result.total_tokens' is 'local', and not a number" in " ".join(shown.split())
    assert "1/1 (100.0%)" in shown and "coverage 1/2" in shown
    (row,) = [row for row in Reader(StoredFiles()).job(job).rows if row["task_name"] == "bad"]
    assert row["error_info"]["code"] == "unreadable_result"
    assert Reader(StoredFiles()).rollout(file.parent).result["error"].startswith("result.json cannot be read: ")


def test_no_field_of_a_result_breaks_a_reader(job):
    (file,) = job.glob("bad__*/result.json")
    whole = {**json.loads(file.read_text()), **RESULT}
    for number, value in enumerate(spoiled(whole)):
        file.write_text(json.dumps(value))
        if number % 7 == 0:
            look_at_everything(job)
        else:
            look(list_jobs, str(job.parent), json_too=False)
            look(show, str(file.parent), json_too=False)


@pytest.mark.parametrize("name", ["summary.json", "job.json", "config.json", "lock.json"])
def test_no_other_file_breaks_a_reader(job, name):
    whole = {
        "summary.json": {
            "job_name": "torn",
            "elapsed_sec": 1.0,
            "total": 2,
            "agent": "a",
            "arms": {"x": {"score": "1"}},
        },
        "job.json": {"items": [{"rollout": "r", "task": "/t", "arm": "x"}], "arms": ["x"], "config": {"agent": "a"}},
        "config.json": {"timeout_sec": 1, "agent_env": {"A": "b"}},
        "lock.json": {"agents": {"a": {"name": "a", "layers": ["l"]}}, "host": {"machine": "m"}, "seed": 1},
    }[name]
    file = (next(job.glob("bad__*")) if name in ("config.json", "lock.json") else job) / name
    for value in [*spoiled(whole), [], "x", None]:
        file.write_text(json.dumps(value))
        look_at_everything(job)
