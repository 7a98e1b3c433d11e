"""Record once, replay without a model; leave the recording and be told; go on live from where it ends."""

from __future__ import annotations

import json

import pytest

WORK = "echo 'Hello, Ada!' > /app/hello.txt"


@pytest.fixture
def run(bench, examples, somebodys, local_model, name, result_of, tmp_path):
    local_model.script("work", [{"text": "I do it.", "tools": [{"name": "bash", "args": {"command": WORK}}]}])

    def go(job, *more, prompt="[[fake:work]]", key=True):
        env = somebodys if key else {k: v for k, v in somebodys.items() if k != "OPENAI_API_KEY"}
        args = ["-t", examples / "hello-file", "-a", "somebodys", "-e", name("local"), "-m", "openai/some-model"]
        done = bench("eval", "create", *args, "--retries", "0", "--prompt", prompt, "--job-name", job, *more, more=env)
        return done, result_of(tmp_path / "jobs" / job)

    return go


def test_a_recorded_run_is_repeated_without_a_model(run, local_model, tmp_path):
    done, result = run("first", "--record")
    assert done.code == 0, done.err
    lines = (result["dir"] / "trajectory/recording/agent.jsonl").read_text().splitlines()
    assert len(lines) == 1 and json.loads(lines[0])["answer"]
    asked = len(local_model.log)
    local_model.answers.scenarios.clear()
    done, result = run("again", "--replay", tmp_path / "jobs/first", key=False)
    assert done.code == 0, done.err
    assert len(local_model.log) == asked, "nobody was asked"
    assert result["rewards"] == {"reward": 1.0} and set(result["flags"]) - {"contended"} == {"replayed"}
    usage = result["agent_result"]
    assert usage["usage_source"] == "recording" and usage["cost_usd"] == 0 and usage["total_tokens"] > 0
    assert usage["usage_details"]["replay"]["agent"]["exact"] == 1


def test_leaving_the_recording_is_said_and_without_a_key_it_is_an_error(run, local_model, tmp_path):
    run("first", "--record")
    done, result = run("other", "--replay", tmp_path / "jobs/first", prompt="[[fake:work]] and more", key=False)
    assert done.code == 1
    assert result["error_info"]["kind"] == "provider" and not result["error_info"]["retryable"]
    assert "replay-diverged" in result["flags"]
    [notice] = [n for n in result["notices"] if "left the recording" in n]
    assert "messages[0].content" in notice and "and more" in notice


def test_where_the_recording_ends_the_model_is_asked(run, local_model, tmp_path):
    run("first", "--record")
    asked = len(local_model.log)
    done, result = run(
        "longer", "--replay", tmp_path / "jobs/first", "--prompt", "[[fake:work]] once more", "--usage-tracking", "auto"
    )
    assert done.code == 0, done.err
    assert len(local_model.log) == asked + 1
    report = result["agent_result"]["usage_details"]["replay"]["agent"]
    assert (report["exact"], report["live"], report["divergence"]) == (1, 1, "the recording has ended")
    assert result["agent_result"]["cost_usd"] is None, "what the live call cost is not known: it was not nothing"
    calls = [json.loads(x) for x in (result["dir"] / "trajectory/llm_trajectory.jsonl").read_text().splitlines()]
    assert [c["metadata"].get("replayed", "") for c in calls] == ["exact", ""]
    assert [c["metadata"]["turn"] for c in calls] == [1, 2]


def test_a_task_without_a_recording_is_refused_before_anything_starts(bench, examples, somebodys, name, tmp_path):
    (tmp_path / "empty").mkdir()
    args = ["-t", examples / "hello-file", "-a", "somebodys", "-e", name("local"), "-m", "openai/m"]
    done = bench("eval", "create", *args, "--replay", tmp_path / "empty", more=somebodys)
    assert done.code == 1 and "no recording of task 'hello-file'" in done.err and "--record" in done.err
    assert not (tmp_path / "jobs").exists()
