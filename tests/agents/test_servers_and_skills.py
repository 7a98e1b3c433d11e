"""What a task offers an agent beside its prompt is really used: MCP servers, skills, and a permission that is given."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]
HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "tasks" / "hello-file"
SDK = "mcp==2.3.0"
PORT = 8931
SERVERS = f"""
[environment]
[[environment.mcp_servers]]
name = "near"
transport = "stdio"
command = "python3"
args = ["/opt/ledger/mcp_server.py", "stdio", "/app/ledger.txt"]
[[environment.mcp_servers]]
name = "far"
transport = "streamable-http"
url = "http://127.0.0.1:{PORT}/mcp"
"""
SKILL = """---
name: ledger-keeping
description: How the zanzibar ledger is kept.
---
Write every entry in quince ink.
"""
COMMAND = "echo made > /app/made.txt"
RUN = {"do": "bash", "command": COMMAND}
FIND = {"name": "ToolSearch", "args": {"query": "select:mcp__near__add_stdio_entry,mcp__far__add_http_entry"}}
"""Claude Code tells its model only the names of a server's tools at first."""
MODELS = {
    "pi": "anthropic/local-model",
    "opencode": "vllm/local-model",
    "claude": "anthropic/local-model",
    "codex": "openai/local-model",
    "gemini": "gemini/local-model",
}
LISTED = {"claude": "ledger-keeping"}
"""What its model is told of a skill before it is used; the others are told its description too."""


def escalated(command: str) -> dict[str, object]:
    """What Codex asks for: its own sandbox needs namespaces inside the box's, which the embedded one does not have."""
    return {"name": "exec_command", "args": {"cmd": command, "sandbox_permissions": "require_escalated"}}


def steps(agent: str, place: str) -> list[object]:
    """A command, a tool of each server, the skill."""
    path = f"{place}/ledger-keeping/SKILL.md"
    tools: list[dict[str, object]] = [escalated(COMMAND) if agent == "codex" else RUN]
    if agent != "pi":
        calls = [{"do": "call", "tool": f"add_{way}_entry", "args": {"text": "a loaf"}} for way in ("stdio", "http")]
        tools += [*([FIND] if agent == "claude" else []), *calls]
    use = {"do": "skill", "skill": "ledger-keeping", "path": path}
    tools.append(escalated(f"cat {path}") if agent == "codex" else use)
    return [*({"tools": [tool]} for tool in tools), "Everything is done."]


@pytest.fixture(scope="session")
def sdk(tmp_path_factory):
    """The official SDK for the box's Python, as a folder."""
    made: dict[str, Path] = {}

    def folder(version: str) -> Path:
        if version not in made:
            target = tmp_path_factory.mktemp("mcp") / "sdk"
            argv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--only-binary", ":all:"]
            subprocess.run([*argv, "--python-version", version, "--target", target, SDK], check=True, timeout=240)
            made[version] = target
        return made[version]

    return folder


@pytest.fixture
def serve(sdk):
    """Brings the servers into the box, and starts the one that is reached by its address."""

    async def before(rollout):
        box = rollout.sandbox
        asked = await box.exec(
            ("python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"), cwd="/", timeout=60
        )
        await box.upload(sdk(asked.stdout.decode().strip()), "/opt/ledger/sdk")
        await box.upload(HERE / "mcp_server.py", "/opt/ledger/mcp_server.py")
        await box.spawn(("python3", "/opt/ledger/mcp_server.py", "http", "/app/ledger.txt", str(PORT)), cwd="/")
        wait = (
            f"import socket,time\nfor _ in range(600):\n try: socket.create_connection(('127.0.0.1', {PORT})); break\n"
        )
        wait += " except OSError: time.sleep(0.1)\nelse: raise SystemExit(1)"
        assert (await box.exec(("python3", "-c", wait), cwd="/", timeout=90)).exit_code == 0

    return before


@pytest.mark.parametrize(
    ("agent", "model"),
    [pytest.param(a, m, marks=pytest.mark.xdist_group(f"agent-{a}"), id=a) for a, m in MODELS.items()],
)
async def test_servers_skills_and_a_permission_are_used(connect, serve, tmp_path, agent, model):
    task = shutil.copytree(EXAMPLE, tmp_path / "task")
    with (task / "task.toml").open("a") as file:
        file.write("" if agent == "pi" else SERVERS)
    (tmp_path / "skills" / "ledger-keeping").mkdir(parents=True)
    (tmp_path / "skills" / "ledger-keeping" / "SKILL.md").write_text(SKILL)
    live = await connect(
        agent,
        model,
        task=task,
        permissions="ask",
        skills_dir=str(tmp_path / "skills"),
        before=None if agent == "pi" else serve,
    )
    [brought] = live.events("skills")
    live.model.script("all", steps(agent, brought["data"]["places"][0]))
    assert await live.prompt("[[fake:all]]") == "end_turn"
    asked = [seen for seen in live.model.log if seen.scenario == "all"]
    last = json.dumps(asked[-1].body)

    # The skill: named before anything is called, and its text there after it was.
    assert LISTED.get(agent, "zanzibar") in json.dumps(asked[0].body) and "quince ink" not in json.dumps(asked[0].body)
    assert "quince ink" in last

    # The servers: what their tools did is in the box, what they answered reached the model, and the events name them.
    if agent != "pi":
        assert await live.read("/app/ledger.txt") == "stdio: a loaf\nhttp: a loaf\n"
        assert "the stdio ledger now has 1 entries" in last and "the http ledger now has 2 entries" in last
        told = json.dumps(live.events("tool_call", "tool_call_update", "permission_request"))
        assert "add_stdio_entry" in told and "add_http_entry" in told

    # The permission: asked for, given once, and used.
    assert await live.read("/app/made.txt") == "made\n"
    requests = [e["data"] for e in live.events("permission_request")]
    assert bool(requests) is (agent != "pi")
    for request in requests:
        [chosen] = [o for o in request["options"] if o["optionId"] == request["outcome"]["optionId"]]
        assert chosen["kind"] == "allow_once"
