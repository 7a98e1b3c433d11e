"""The reviewer through the official MCP client, and inside a rollout with an agent that calls it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from pathlib import Path

import pytest
from benchflow_service_reviewer.review import workspace_text
from benchflow_service_reviewer.server import serve
from benchflow_testing_kit.kinds import ServiceConformance
from mcp import Client

from benchflow_core.contracts import HostServiceContext
from benchflow_core.errors import ConfigurationError, ProviderError
from benchflow_core.rollout import Rollout, RolloutConfig


class TestConformance(ServiceConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "benchflow-reviewer"


class Model:
    """Stands where the gateway is: says what it is told to say, and remembers what it was asked."""

    def __init__(self, answer: str | Exception = "Line 1 greets nobody.") -> None:
        self.answer, self.asked = answer, []
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self, talk, system):
        self.asked.append((talk, system))
        await self.go.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def context(workspace: Path, model: Model) -> HostServiceContext:
    async def copy(target: Path) -> None:
        await asyncio.to_thread(shutil.copytree, workspace, target, symlinks=True)

    return HostServiceContext("benchflow-reviewer", "/app", copy, model, "Write a greeting.")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "hello.py").write_text("print('hello')\n")
    (folder / "data.bin").write_bytes(b"\0\1\2")
    (folder / "secrets").symlink_to("/etc/passwd")
    return folder


def digest(folder: Path) -> str:
    files = sorted(
        (p.relative_to(folder).as_posix(), p.lstat().st_mtime_ns, p.is_file() and p.read_bytes())
        for p in folder.rglob("*")
    )
    return hashlib.sha256(repr(files).encode()).hexdigest()


async def test_the_official_client_gets_a_review(workspace):
    model = Model()
    async with serve(context(workspace, model)) as endpoint:
        async with Client(f"http://127.0.0.1:{endpoint.port}/mcp") as client:
            tools = (await client.list_tools()).tools
            assert sorted(tool.name for tool in tools) == ["get_review_status", "review_code"]
            answer = await client.call_tool("review_code", {"question": "Is the greeting right?"})
            found = json.loads(answer.content[0].text)
            assert found["status"] == "done" and found["feedback"] == "Line 1 greets nobody."
            assert found["files"] == ["src/hello.py"]
            again = json.loads(
                (await client.call_tool("get_review_status", {"review_id": found["review_id"]})).content[0].text
            )
            assert again == found
            wrong = await client.call_tool("get_review_status", {"review_id": "review-99"})
            assert wrong.is_error and "there is no review 'review-99'" in wrong.content[0].text
    ((talk, system),) = model.asked
    asked = talk[0][1]
    assert "Write a greeting." in asked and "   1 print('hello')" in asked and "Is the greeting right?" in asked
    assert "root:" not in asked and "cannot change anything" in system


async def test_a_review_can_be_waited_for_later(workspace):
    model = Model()
    model.go.clear()
    async with serve(context(workspace, model)) as endpoint:
        async with Client(f"http://127.0.0.1:{endpoint.port}/mcp") as client:
            started = json.loads((await client.call_tool("review_code", {"wait": False})).content[0].text)
            assert started["status"] == "running" and not started["feedback"]
            model.go.set()
            for _ in range(100):
                now = json.loads((await client.call_tool("get_review_status", {})).content[0].text)
                if now["status"] != "running":
                    break
                await asyncio.sleep(0.02)
            assert now["status"] == "done"


async def test_a_model_that_fails_is_said_and_the_server_goes_on(workspace):
    async with serve(context(workspace, Model(ProviderError("no credit.")))) as endpoint:
        async with Client(f"http://127.0.0.1:{endpoint.port}/mcp") as client:
            found = json.loads((await client.call_tool("review_code", {})).content[0].text)
            assert found["status"] == "failed" and "no credit" in found["feedback"]


async def test_the_workspace_stays_as_it_is_whatever_the_model_says(workspace):
    before = digest(workspace)
    wish = '{"tool": "write", "path": "src/hello.py"}\n```sh\nrm -rf /app; echo x > src/hello.py\n```'
    async with serve(context(workspace, Model(wish))) as endpoint:
        async with Client(f"http://127.0.0.1:{endpoint.port}/mcp") as client:
            answer = await client.call_tool("review_code", {"paths": ["../../../etc/passwd", "/etc/passwd", "src"]})
            assert json.loads(answer.content[0].text)["files"] == ["src/hello.py"]
    assert digest(workspace) == before


def test_what_is_shown_is_bounded(tmp_path):
    (tmp_path / "big.txt").write_text("x" * 1_000_000)
    for number in range(10):
        (tmp_path / f"n{number}.txt").write_text("y" * 59_000)
    text, shown = workspace_text(tmp_path)
    assert len(text) < 400_000 and "[cut]" in text and "left out, too much" in text and len(shown) < 11


# --- in a rollout -----------------------------------------------------------------------------------------------

AGENT = r"""
import json, sys, urllib.request

def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def call(url, body, session=None):
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if session: headers["mcp-session-id"] = session
    answer = urllib.request.urlopen(urllib.request.Request(url, json.dumps({"jsonrpc": "2.0", **body}).encode(), headers))
    text = answer.read().decode()
    rows = [json.loads(line[5:]) for line in text.splitlines() if line.startswith("data:") and line[5:].strip()]
    return (rows or [json.loads(text or "null")])[-1], answer.headers.get("mcp-session-id")

server = None
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        send({"id": number, "result": {"protocolVersion": 1, "agentCapabilities": {"mcpCapabilities": {"http": True}}, "authMethods": []}})
    elif method == "session/new":
        server = message["params"]["mcpServers"][0]
        send({"id": number, "result": {"sessionId": "s"}})
    elif method == "session/prompt":
        open("/app/hello.py", "w").write("print('hi')\n")
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        _, session = call(server["url"], {"id": 1, "method": "initialize", "params": hello})
        call(server["url"], {"method": "notifications/initialized"}, session)
        answer, _ = call(server["url"], {"id": 2, "method": "tools/call", "params": {"name": "review_code", "arguments": {}}}, session)
        open("/app/feedback.json", "w").write(json.dumps({"server": server, "answer": answer}))
        send({"id": number, "result": {"stopReason": "end_turn"}})
"""
TEST = "#!/bin/sh\ncat /app/feedback.json; ls -la /app\nif grep -q 'greet Ada' /app/feedback.json; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"


@pytest.fixture
def task(tmp_path: Path) -> Path:
    folder = tmp_path / "task"
    for name, text in {
        "task.toml": 'version = "1.0"\n[metadata.benchflow]\nallow_substitute = true\n',
        "instruction.md": "Greet. [[fake:opinion]]",
        "environment/Dockerfile": "FROM python:3.12-slim\nWORKDIR /app\nCOPY agent.py /opt/agent.py\n",
        "environment/agent.py": AGENT,
        "tests/test.sh": TEST,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


async def test_an_agent_calls_it_through_the_server_it_was_offered(task, tmp_path, local_model, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-provider")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{local_model.base_url}/v1")
    local_model.script("opinion", [{"text": "It should greet Ada."}])
    config = RolloutConfig(
        task,
        jobs_dir=tmp_path / "jobs",
        sandbox="local",
        agent="cmd:python3 /opt/agent.py",
        services=["benchflow-reviewer:8107?model=openai/some-model"],
    )
    result = await (await Rollout.create(config)).run()
    said = (result.rollout_dir / "verifier" / "test-stdout.txt").read_text()
    assert result.rewards == {"reward": 1.0}, (result.error, said)
    assert '"url": "http://127.0.0.1:8107/mcp"' in said and "print('hi')" in str(local_model.log[-1].body)
    assert result.world["services"] == ["benchflow-reviewer"]
    calls = (result.rollout_dir / "trajectory" / "llm_trajectory.jsonl").read_text().splitlines()
    assert len(calls) == 1, "counted at the gateway"


async def test_without_a_model_it_is_refused_before_anything_starts(task, tmp_path):
    config = RolloutConfig(
        task, jobs_dir=tmp_path / "jobs", sandbox="local", agent="scripted", services=["benchflow-reviewer:8100"]
    )
    with pytest.raises(ConfigurationError, match="needs a model"):
        await Rollout.create(config)


def test_the_older_module_name():
    from benchflow.mcp import reviewer_server

    assert reviewer_server.serve is serve
