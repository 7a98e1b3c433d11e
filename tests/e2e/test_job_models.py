"""A job whose agents ask models: refused keys, limits of providers, budgets of tokens and money."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def create(bench, examples, somebodys, name):
    def run(*more, prompt="[[fake:say text=hi]]"):
        args = ["--json", "eval", "create", "-t", examples / "hello-file", "-a", "somebodys", "-e", name("local")]
        args += ["-m", "openai/some-model", "--prompt", prompt, "--job-name", "j", "-c", "1"]
        return bench(*args, *more, more=somebodys)

    return run


def test_a_refused_key_stops_the_job_and_says_so(create, local_model):
    local_model.script("deny", [{"text": "no", "status": 401}])
    done = create("--trials", "4", prompt="[[fake:deny]]")
    assert done.code == 1
    assert "the provider failed" in done.json["stopped"]
    assert done.json["not_run"] == 3 and len(done.json["rollouts"]) == 1
    assert done.json["rollouts"][0]["error_info"]["code"] == "credential_refused"
    assert "nothing new starts" in done.err


def test_a_failing_provider_is_asked_again_and_every_attempt_is_kept(create, tmp_path):
    done = create("--retries", "1", prompt="[[fake:overload]]")
    assert done.code == 1 and "next in" in done.err
    assert done.json["rollouts"][0]["error_info"]["kind"] == "provider"
    [kept] = (tmp_path / "jobs" / "j" / "attempts").iterdir()
    assert json.loads((kept / "result.json").read_text())["error_info"]["kind"] == "provider"


def test_a_budget_of_tokens_is_kept_and_counts_on_after_resume(create, bench, somebodys, tmp_path):
    done = create("--trials", "4", "--max-tokens", "1")
    assert done.code == 1 and done.json["stopped"].startswith("--max-tokens 1 is reached")
    assert done.json["not_run"] == 3 and done.json["total_tokens"] > 0
    job = tmp_path / "jobs" / "j"
    again = bench("--json", "eval", "resume", job, more=somebodys)
    assert again.json["not_run"] == 3 and "--max-tokens" in again.json["stopped"], "what was used before counts"
    rest = bench("--json", "eval", "resume", job, "--max-tokens", "1000000", more=somebodys)
    assert rest.code == 0 and rest.json["coverage"] == 1.0


def test_a_budget_of_money_that_nobody_can_keep_is_refused(create, tmp_path):
    done = create("--max-cost", "5")
    assert done.code == 1 and "prices" in done.err and "--max-tokens" in done.err
