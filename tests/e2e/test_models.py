"""An agent of somebody else's that asks a model: its key stays outside, its calls are recorded and counted."""

from __future__ import annotations

import json

PROVIDER_KEY = "sk-provider-key-that-must-stay-outside"


def test_a_model_driven_agent_from_end_to_end(bench, examples, somebodys, local_model, result_of):
    leak = "env; cat /proc/*/environ 2>/dev/null; grep -rl sk-provider /app /root /tmp /etc /logs /opt/benchflow /run 2>/dev/null"
    work = f"echo 'Hello, Ada!' > /app/hello.txt; ({leak}) > /logs/artifacts/seen.txt"
    local_model.script("work", [{"text": "I do it.", "tools": [{"name": "bash", "args": {"command": work}}]}])
    task = examples / "hello-file"
    args = ["eval", "create", "-t", task, "-a", "somebodys", "-m", "openai/some-model", "--prompt", "[[fake:work]]"]
    done = bench(*args, more=somebodys)
    assert done.code == 0, done.err
    result = result_of()
    assert result["rewards"] == {"reward": 1.0}
    usage = result["agent_result"]
    assert usage["usage_source"] == "provider_response" and usage["total_tokens"] > 0
    calls = [json.loads(line) for line in (result["dir"] / "trajectory/llm_trajectory.jsonl").read_text().splitlines()]
    assert [c["response"]["status_code"] for c in calls] == [200]
    assert calls[0]["metadata"]["request_model"] == "some-model"
    assert "gateway" in {p["kind"] for p in result["plugins"]}
    [seen] = local_model.log
    assert seen.credential == PROVIDER_KEY
    artifact = (result["dir"] / "artifacts/logs/artifacts/seen.txt").read_text()
    assert "MODEL_KEY=[redacted]" in artifact
    assert PROVIDER_KEY not in b"".join(p.read_bytes() for p in result["dir"].rglob("*") if p.is_file()).decode(
        "utf-8", "replace"
    )


def test_a_failing_model_is_the_providers_failure_although_the_agent_says_nothing(
    bench, examples, somebodys, result_of
):
    args = ["eval", "create", "-t", examples / "hello-file", "-a", "somebodys", "-m", "openai/m", "--retries", "0"]
    done = bench(*args, "--prompt", "[[fake:overload]]", more=somebodys)
    assert done.code == 1
    result = result_of()
    assert result["rewards"] is None
    assert result["error_info"]["kind"] == "provider", result["error_info"]


def test_what_is_missing_is_said_before_anything_starts(bench, examples, somebodys, tmp_path):
    task = examples / "hello-file"
    none = bench("eval", "create", "-t", task, "-a", "somebodys", more=somebodys)
    assert none.code == 1 and "needs a model" in none.err
    nobody = bench("eval", "create", "-t", task, more={"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": ""})
    assert nobody.code == 1 and "no agent was named, and '" in nobody.err and "Add -a NAME" in nobody.err
    keyless = {k: v for k, v in somebodys.items() if k != "OPENAI_API_KEY"}
    missing = bench("eval", "create", "-t", task, "-a", "somebodys", "-m", "openai/m", more=keyless)
    assert missing.code == 1 and "OPENAI_API_KEY" in missing.err
    unknown = bench("eval", "create", "-t", task, "-a", "somebodys", "-m", "opnai/m", more=somebodys)
    assert unknown.code == 1 and "openai" in unknown.err
    assert not (tmp_path / "jobs").exists()


def test_a_refused_key_stops_a_fleet_before_it_starts(bench, examples, somebodys, local_model, name, tmp_path):
    local_model.key = "another-key"
    args = ["-t", examples / "hello-file", "-a", "somebodys", "-e", name("local"), "-m", "openai/m", "--trials", "3"]
    done = bench("eval", "create", *args, more=somebodys)
    assert done.code == 1 and "key" in done.err and "401" in done.err
    assert not list((tmp_path / "jobs").rglob("result.json")) and len(local_model.log) == 1


def test_a_cap_ends_what_an_agent_may_use(bench, examples, somebodys, local_model, name, result_of):
    local_model.script("work", [{"text": "I do it.", "tools": [{"name": "bash", "args": {"command": "true"}}]}])
    args = ["-t", examples / "hello-file", "-a", "somebodys", "-e", name("local"), "-m", "openai/m", "--retries", "0"]
    prompts = ["--prompt", "[[fake:work]]", "--prompt", "[[fake:work]] again"]
    done = bench("eval", "create", *args, *prompts, "--max-rollout-tokens", "1", more=somebodys)
    result = result_of()
    assert done.code == 1 and len(local_model.log) == 1
    assert result["error_info"]["details"]["error_type"] == "budget" and not result["error_info"]["retryable"]


def test_tokens_that_nobody_reported_fail_a_rollout_that_requires_them(
    bench, examples, somebodys, local_model, name, result_of
):
    work = {"name": "bash", "args": {"command": "echo 'Hello, Ada!' > /app/hello.txt"}}
    local_model.script("silent", [{"text": "I do it.", "tools": [work], "no_usage": True}])
    args = ["-t", examples / "hello-file", "-a", "somebodys", "-e", name("local"), "-m", "openai/m", "--retries", "0"]
    done = bench("eval", "create", *args, "--prompt", "[[fake:silent]]", "--usage-tracking", "required", more=somebodys)
    result = result_of()
    assert done.code == 1 and result["rewards"] is None
    assert result["error_info"]["kind"] == "provider" and "not all reported" in result["error"]


SILENT = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    answers = {"initialize": {"protocolVersion": 1}, "session/new": {"sessionId": "s"}}
    result = answers.get(message["method"], {"stopReason": "end_turn"})
    print(json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}), flush=True)
"""


def test_an_agent_that_never_asks_its_model_is_marked(
    bench, examples, somebodys, local_model, name, result_of, tmp_path
):
    launch = json.dumps(["python3", "-c", SILENT])
    agent = tmp_path / "silent.toml"
    agent.write_text(f'name = "silent"\nversion = "1"\nlaunch = {launch}\nwires = ["chat"]\n')
    args = ["-t", examples / "hello-file", "-a", agent, "-e", name("local"), "-m", "openai/m"]
    done = bench("eval", "create", *args, more=somebodys)
    result = result_of()
    assert done.code == 0 and result["rewards"] == {"reward": 0.0} and not local_model.log
    assert "no-model-calls" in result["flags"]
    assert "'agent' ended its turns without asking its model" in done.out + done.err
