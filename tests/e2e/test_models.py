"""An agent of somebody else's that asks a model: its key stays outside, its calls are recorded and counted."""

from __future__ import annotations

import json
import textwrap

import pytest

PROGRAM = r"""
import json, os, subprocess, sys, urllib.request

def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def ask(prompt):
    body = {"model": os.environ["MODEL"], "messages": [{"role": "user", "content": prompt}],
            "tools": [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object",
                       "properties": {"command": {"type": "string"}}, "required": ["command"]}}}]}
    request = urllib.request.Request(os.environ["BASE"] + "/v1/chat/completions", json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": "Bearer " + os.environ["MODEL_KEY"]})
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]

for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        send({"id": number, "result": {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}})
    elif method == "session/new":
        send({"id": number, "result": {"sessionId": "s"}})
    elif method == "session/prompt":
        try:
            answer = ask(message["params"]["prompt"][0]["text"])
            for call in answer.get("tool_calls") or ():
                subprocess.run(["sh", "-c", json.loads(call["function"]["arguments"])["command"]])
        except Exception:
            pass  # like several real agents: a failed model call is not mentioned
        send({"id": number, "result": {"stopReason": "end_turn"}})
"""
PLUGIN = """
from pathlib import Path
from benchflow_core.contracts import AgentSpec, Launch, Layer, Runtime
from benchflow_core.hookspecs import hookimpl

PROGRAM = (Path(__file__).parent / "program.txt").read_bytes()

def prepare(context):
    env = {"BASE": context.endpoint.base_url, "MODEL": context.endpoint.model, "MODEL_KEY": context.endpoint.key}
    return Launch(argv=(context.runtimes["python"], f"{context.prefix}/agent.py"), env=env)

@hookimpl
def benchflow_agent():
    layer = Layer(key="somebodys-agent@1.0", prefix="/opt/benchflow/agents/somebodys", files={"agent.py": PROGRAM})
    return AgentSpec(summary="asks once, does what it is told", prepare=prepare, layers=(layer,),
                     runtimes=(Runtime("python", "3.8"),), wires=("chat",), errors_are_silent=True)
"""
PROVIDER_KEY = "sk-provider-key-that-must-stay-outside"


@pytest.fixture
def somebodys(tmp_path, local_model):
    """The agent's distribution, and a provider it is to use."""
    site = tmp_path / "site"
    info = site / "somebodys_agent-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys-agent\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[benchflow.agents]\nsomebodys = somebodys_plugin\n")
    (site / "somebodys_plugin.py").write_text(textwrap.dedent(PLUGIN))
    (site / "program.txt").write_text(PROGRAM)
    return {"PYTHONPATH": str(site), "OPENAI_BASE_URL": f"{local_model.base_url}/v1", "OPENAI_API_KEY": PROVIDER_KEY}


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
    keyless = {k: v for k, v in somebodys.items() if k != "OPENAI_API_KEY"}
    missing = bench("eval", "create", "-t", task, "-a", "somebodys", "-m", "openai/m", more=keyless)
    assert missing.code == 1 and "OPENAI_API_KEY" in missing.err
    unknown = bench("eval", "create", "-t", task, "-a", "somebodys", "-m", "opnai/m", more=somebodys)
    assert unknown.code == 1 and "openai" in unknown.err
    assert not (tmp_path / "jobs").exists()
