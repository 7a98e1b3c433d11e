"""Each real agent does the same: what the gateway recorded, what is in the box and what the events say must agree."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from benchflow_core.errors import ProviderError

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]

AGENTS = {
    "pi": "anthropic/local-model",
    "opencode": "vllm/local-model",
    "claude": "anthropic/local-model",
    "codex": "openai/local-model",
    "gemini": "gemini/local-model",
}
"""With models whose providers speak all four wires between them."""
OTHER = {"pi": "openai/local-model", "opencode": "gemini/local-model", "claude": "anthropic/claude-opus-4-6"}
"""A second wire for those that speak several, and a model of which Claude Code knows that it has an effort."""
EFFORT = {
    "pi": lambda body: body["reasoning"]["effort"],
    "opencode": lambda body: body["generationConfig"]["thinkingConfig"]["thinkingLevel"],
    "claude": lambda body: body["output_config"]["effort"],
    "codex": lambda body: body["reasoning"]["effort"],
    "gemini": lambda body: body["generationConfig"]["thinkingConfig"]["thinkingLevel"],
}
WEB_TOOLS = {"web_search", "WebSearch", "WebFetch", "webfetch", "websearch", "google_web_search", "web_fetch"}
EXAMPLE = Path(__file__).parents[2] / "examples" / "tasks" / "hello-file"
NEVER_ASKS = {"pi"}
CONTENT = "hello from the local model\n"


def each(*names: str) -> pytest.MarkDecorator:
    """One worker per agent, so that two never install at once what both wait for."""
    cases = [pytest.param(n, AGENTS[n], marks=pytest.mark.xdist_group(f"agent-{n}"), id=n) for n in names or AGENTS]
    return pytest.mark.parametrize(("agent", "model"), cases)


@each()
async def test_turns_agree_in_gateway_box_and_events(connect, texts, agent, model):
    live = await connect(agent, model)
    session = live.session().id

    assert await live.prompt("[[fake:write-hello path=/app/made.txt]]") == "end_turn"
    assert await live.read("/app/made.txt") == CONTENT
    assert texts(live.events("agent_message_chunk")).endswith("Done: the file is written.")
    [call] = {e["data"]["toolCallId"] for e in live.events("tool_call")}
    updates = [e["data"] for e in live.events("tool_call_update") if e["data"]["toolCallId"] == call]
    assert [update["status"] for update in updates if "status" in update][-1] == "completed"
    assert [e.status for e in await live.exchanges()] == [200, 200]

    # A second prompt in the same session: the model still sees the first.
    assert await live.prompt('[[fake:say text="a second answer"]]') == "end_turn"
    assert live.session().id == session and texts(live.events("agent_message_chunk")).endswith("a second answer")
    third = (await live.exchanges())[2]
    assert "write-hello path=/app/made.txt" in json.dumps(third.request)

    # A cancelled turn ends as that, and its request is given up. The session goes on.
    turn = asyncio.create_task(live.prompt("[[fake:slow]]"))
    await live.asked("slow")
    await live.session().cancel()
    assert await turn == "cancelled"
    [ended] = live.events("turn_cancelled")
    assert ended["data"]["answered"] is True
    assert await live.prompt('[[fake:say text="still here"]]') == "end_turn"

    # A model that fails is the provider's failure, whatever the agent says of it.
    with pytest.raises(ProviderError) as failed:
        await live.prompt("[[fake:fail]]")
    assert failed.value.details["status"] == 400

    result = await live.rollout.cleanup()
    asked = [seen for seen in live.model.log if seen.wire]
    lines = (result.rollout_dir / "trajectory" / "llm_trajectory.jsonl").read_text().splitlines()
    recorded = [json.loads(line) for line in lines]
    passed = [r for r in recorded if (r.get("error") or {}).get("type") != "refused"]
    assert len(passed) == len(asked)
    answered = [seen.tokens.input for seen in asked if seen.status == 200 and not seen.client_gone]
    assert result.usage.source == "provider_response" and result.usage.input_tokens >= sum(answered)
    assert {seen.model for seen in asked} == {"local-model"}, "a model that was not declared was asked"
    everything = b"".join(p.read_bytes() for p in result.rollout_dir.rglob("*") if p.is_file())
    assert b"sk-provider-key" not in everything


ESCALATED = {
    "name": "exec_command",
    "args": {
        "cmd": "echo made > /app/made.txt",
        "sandbox_permissions": "require_escalated",
        "justification": "it has to be written",
    },
}
PLAIN = {"do": "bash", "command": "echo made > /app/made.txt"}


@pytest.fixture
def offline(tmp_path):
    """The example, cut off from the network."""
    task = shutil.copytree(EXAMPLE, tmp_path / "task")
    with (task / "task.toml").open("a") as file:
        file.write('\n[environment]\nnetwork_mode = "no-network"\n')
    return task


@each()
async def test_under_a_strict_policy(connect, offline, agent, model):
    """Without network, with permissions refused, at low effort: each is seen where it counts."""
    model = OTHER.get(agent, model)
    live = await connect(agent, model, task=offline, permissions="reject", reasoning_effort="low")
    live.model.script("ask", [{"tools": [ESCALATED if agent == "codex" else PLAIN]}, "I may not."])
    await live.prompt("[[fake:ask]]")
    for request in (seen for seen in live.model.log if seen.scenario == "ask"):
        assert not WEB_TOOLS & set(request.tools), "a tool of the web is offered where there is none"
        assert EFFORT[agent](request.body) in ("low", "LOW", 2048)
    asked = live.events("permission_request")
    if agent in NEVER_ASKS:
        assert not asked and await live.read("/app/made.txt") == "made\n"
        return
    assert len(asked) == 1
    chosen = asked[0]["data"]["outcome"]["optionId"]
    kinds = {o["optionId"]: o["kind"] for o in asked[0]["data"]["options"]}
    assert kinds[chosen].startswith("reject")
    assert await live.read("/app/made.txt") is None


@each("pi")
@pytest.mark.parametrize("provider", ["gemini", "vllm"])
async def test_an_agent_that_speaks_every_wire(connect, agent, model, provider):
    live = await connect(agent, f"{provider}/local-model", reasoning_effort="low")
    assert await live.prompt("[[fake:write-hello path=/app/made.txt]]") == "end_turn"
    assert await live.read("/app/made.txt") == CONTENT
