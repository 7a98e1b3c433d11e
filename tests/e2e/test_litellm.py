"""An agent that speaks chat completions, at a provider that speaks another wire: chosen by itself, and by name."""

from __future__ import annotations

import json

import pytest

environment = pytest.importorskip("benchflow_service_litellm.environment")
HOME = environment.LiteLLMEnvironment.of_process()

pytestmark = [
    pytest.mark.litellm,
    pytest.mark.xdist_group("litellm"),
    pytest.mark.timeout(600),
    pytest.mark.skipif(not HOME.installed, reason="needs LiteLLM's environment: run scripts/litellm_env.sh"),
]
PROVIDER_KEY = "sk-provider-key-that-must-stay-outside"
WORK = "echo 'Hello, Ada!' > /app/hello.txt"


@pytest.fixture
def run(bench, examples, somebodys, local_model, name, result_of):
    local_model.script("work", [{"text": "I do it.", "tools": [{"do": "bash", "command": WORK}]}])
    provider = {
        "ANTHROPIC_BASE_URL": local_model.base_url,
        "ANTHROPIC_API_KEY": PROVIDER_KEY,
        "BENCHFLOW_LITELLM_HOME": str(HOME.home),
    }

    def go(model, *more, prompt="[[fake:work]]"):
        args = ["-t", examples / "hello-file", "-a", "somebodys", "-e", name("local"), "-m", model, "--retries", "0"]
        env = {**somebodys, **provider}
        return bench("eval", "create", *args, "--prompt", prompt, *more, more=env, timeout=500), result_of()

    return go


def test_translation_is_chosen_where_it_is_needed(run, local_model, name):
    done, result = run("anthropic/some-model", "--record")
    assert done.code == 0, done.err
    assert result["rewards"] == {"reward": 1.0}
    assert {p["name"] for p in result["plugins"] if p["kind"] == "gateway"} == {name("litellm")}
    assert [(s.wire, s.credential) for s in local_model.log] == [("messages", PROVIDER_KEY)]
    [call] = [json.loads(x) for x in (result["dir"] / "trajectory/llm_trajectory.jsonl").read_text().splitlines()]
    assert call["metadata"]["call_type"] == "chat" and call["metadata"]["turn"] == 1
    usage, seen = result["agent_result"], local_model.log[0].tokens
    assert usage["usage_source"] == "provider_response"
    assert (usage["n_input_tokens"], usage["n_output_tokens"]) == (seen.input, seen.output)
