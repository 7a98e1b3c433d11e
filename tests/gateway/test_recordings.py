"""Finding a recording, and what a replay came to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchflow_core.contracts import Exchange, Usage
from benchflow_core.errors import ConfigurationError
from benchflow_core.gateway import GatewayUse, find_recording, recording_of, write_recording
from benchflow_core.gateway.replayed import ReplayReport
from benchflow_core.results.redact import Redactor


def rollout(job: Path, name: str, task: str, trial: int) -> Path:
    folder = job / name
    (folder / "trajectory" / "recording").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"task_path": f"/tasks/{task}", "trial": trial}))
    return folder / "trajectory" / "recording"


def test_a_job_has_one_for_each_task_and_trial(tmp_path: Path) -> None:
    first, second = rollout(tmp_path, "a__1", "a", 1), rollout(tmp_path, "a__2", "a", 2)
    other = rollout(tmp_path, "b__1", "b", 1)
    assert find_recording(tmp_path, "a", 1) == first and find_recording(tmp_path, "a", 2) == second
    assert find_recording(tmp_path, "a", 3) == first, "a trial that was not recorded takes what there is"
    assert find_recording(tmp_path, "b", 1) == other
    assert find_recording(tmp_path / "b__1", "anything", 1) == other, "one rollout's folder is taken as it is"


def test_none_is_said_with_what_there_is(tmp_path: Path) -> None:
    rollout(tmp_path, "a__1", "a", 1)
    with pytest.raises(ConfigurationError, match="no recording of task 'c'") as caught:
        find_recording(tmp_path, "c", 1)
    assert caught.value.remedy == "It has: a."
    with pytest.raises(ConfigurationError, match="is not a folder"):
        find_recording(tmp_path / "nothing", "c", 1)


def exchange(**values: Any) -> Exchange:
    given: dict[str, Any] = {
        "key_id": "k", "started_at": 0.0, "duration": 1.0, "wire": "chat", "path": "/v1/chat/completions",
        "request": {"model": "m"}, "response": {}, "status": 200, "usage": Usage(),
    }  # fmt: skip
    return Exchange(**{**given, **values})


async def test_what_is_written_has_no_secret_and_no_request_of_our_own_refusing(tmp_path: Path) -> None:
    async def some() -> Any:
        yield exchange(answer="the key is sk-secret-0123456789", content_type="application/json")
        yield exchange(error_type="refused", status=400)

    path = recording_of(tmp_path / "recording", "a/b role")
    assert path.name == "a-b-role.jsonl"
    assert await write_recording(path, some(), Redactor(["sk-secret-0123456789"])) == 1
    [line] = path.read_text().splitlines()
    assert json.loads(line)["answer"] == "the key is [redacted]"


def test_a_report_counts_and_names_the_first_place() -> None:
    report = ReplayReport()
    for one in (
        exchange(replayed="exact"),
        exchange(replayed="like"),
        exchange(divergence="here"),
        exchange(divergence="there", error_type="replay_diverged"),
    ):
        report.add(one)
    assert report.to_json() == {"exact": 1, "like": 1, "live": 1, "refused": 1, "divergence": "here"}


def test_with_a_recording_no_key_is_needed_to_plan(open_models: Any, tmp_path: Path) -> None:
    models = open_models({})
    for model in ("openai/gpt-5", "vllm/x", "azure-foundry-openai/x"):
        with pytest.raises(ConfigurationError):
            models.plan(model, ("chat",))
        assert models.plan(model, ("chat",), use=GatewayUse(replay=tmp_path)).target.model
