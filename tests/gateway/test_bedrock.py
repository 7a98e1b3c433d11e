"""A whole rollout on Bedrock, with the checks that its users run on what is left of it. Bedrock itself is a stand-in."""

from __future__ import annotations

import importlib
import json
import os
import re
from pathlib import Path

import pytest

from benchflow_core.plugins import registry
from benchflow_core.rollout import Host, Rollout, RolloutConfig

EXAMPLE = Path(__file__).parents[2] / "examples" / "tasks" / "hello-file"
MODEL = "us.anthropic.claude-opus-4-8"
PROGRAM = """
import json, os, sys, urllib.request

def ask(text):
    body = {"model": os.environ["MODEL"], "max_tokens": 4000, "messages": [{"role": "user", "content": text}]}
    headers = {"x-api-key": os.environ["KEY"], "content-type": "application/json"}
    request = urllib.request.Request(os.environ["BASE"] + "/v1/messages", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["content"][0]["text"]

for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    result = {"initialize": {"protocolVersion": 1}, "session/new": {"sessionId": "s"}}.get(method, {})
    if method == "session/prompt":
        said = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": ask("hello")}}
        update = {"sessionId": "s", "update": said}
        print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": update}), flush=True)
        result = {"stopReason": "end_turn"}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def translator() -> str:
    """Why LiteLLM cannot be used; tests never install it, it is large."""
    if "litellm" not in registry().names("gateway"):
        return "the LiteLLM gateway is not installed"
    environment = importlib.import_module("benchflow_service_litellm.environment").LiteLLMEnvironment.of_process()
    return "" if environment.installed else "needs LiteLLM's environment: run scripts/litellm_env.sh"


NO_TRANSLATOR = translator()


@pytest.fixture
async def bedrock():
    """Answers as Bedrock's `invoke` does, and takes down what it was asked."""
    from aiohttp import web

    asked: list[dict] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        asked.append(json.loads(await request.read()))
        usage = {"input_tokens": 7, "output_tokens": 5, "inputTokens": 7, "outputTokens": 5, "totalTokens": 12}
        said = {"id": "m", "type": "message", "role": "assistant", "model": MODEL, "stop_reason": "end_turn"}
        converse = {"message": {"role": "assistant", "content": [{"text": "hi"}]}}
        content = [{"type": "text", "text": "hi"}]
        return web.json_response(
            {**said, "content": content, "output": converse, "stopReason": "end_turn", "usage": usage}
        )

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked
    await runner.cleanup()


@pytest.mark.litellm
@pytest.mark.xdist_group("litellm")
@pytest.mark.timeout(300)
@pytest.mark.skipif(bool(NO_TRANSLATOR), reason=NO_TRANSLATOR)
async def test_the_effort_is_sent_recorded_and_counted(bedrock, tmp_path):
    url, asked = bedrock
    (tmp_path / "agent.py").write_text(PROGRAM)
    launch = json.dumps(["python3", "-c", PROGRAM])
    env = '[env]\nMODEL = "${model}"\nKEY = "${key}"\nBASE = "${base_url}"\n'
    manifest = f'name = "plain"\nversion = "1"\nlaunch = {launch}\nwires = ["messages"]\n{env}'
    (tmp_path / "agent.toml").write_text(manifest)
    host_env = {
        **os.environ,
        "AWS_BEARER_TOKEN_BEDROCK": "the-token-of-the-cloud",
        "AWS_REGION": "us-west-2",
        "AWS_BEDROCK_RUNTIME_ENDPOINT": url,
        "BENCHFLOW_BEDROCK_THINKING_EFFORT": "max",
    }
    agent, jobs = str(tmp_path / "agent.toml"), tmp_path / "jobs"
    config = RolloutConfig(
        EXAMPLE, agent=agent, model=f"aws-bedrock/{MODEL}", sandbox="local", jobs_dir=jobs, usage_tracking="required"
    )
    rollout = await Rollout.create(config, Host(env=host_env))
    try:
        result = await rollout.run()
    finally:
        await rollout.host.close()
    assert result.error is None, result.error
    assert [body["output_config"]["effort"] for body in asked] == ["max"]

    # grep -ho '"effort": "[a-z]*"' llm_trajectory.jsonl, grep -ho '"usage_source": "[a-z_]*"' result.json
    [trajectory], [summary] = jobs.rglob("llm_trajectory.jsonl"), jobs.rglob("result.json")
    assert set(re.findall(r'"effort": "[a-z]*"', trajectory.read_text())) == {'"effort": "max"'}
    assert set(re.findall(r'"usage_source": "[a-z_]*"', summary.read_text())) == {'"usage_source": "provider_response"'}
    assert json.loads(trajectory.read_text())["metadata"]["effort"] == "max"
    everything = b"".join(p.read_bytes() for p in jobs.rglob("*") if p.is_file())
    assert b"the-token-of-the-cloud" not in everything
