"""OpenHands and OpenClaw: the same as in test_scenario.py, behind a flag because of their size and their start.

BENCHFLOW_SLOW_AGENTS=1 pytest -m slow_agents
"""

from __future__ import annotations

import asyncio
import json
import os

import pytest

from benchflow_core.errors import ProviderError

pytestmark = [
    pytest.mark.agents,
    pytest.mark.slow_agents,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(not os.environ.get("BENCHFLOW_SLOW_AGENTS"), reason="set BENCHFLOW_SLOW_AGENTS=1 to run it"),
]
AGENTS = {"openhands": "vllm/local-model", "openclaw": "openai/local-model"}
WIRES = {
    "openhands": ("anthropic", "openai", "vllm"),
    "openclaw": ("anthropic", "gemini", "vllm"),
}
"""Providers whose wires the scenario above does not go through."""
CONTENT = "hello from the local model\n"


def each() -> pytest.MarkDecorator:
    cases = [pytest.param(n, m, marks=pytest.mark.xdist_group(f"agent-{n}"), id=n) for n, m in AGENTS.items()]
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
    assert updates[-1]["status"] == "completed"
    assert [e.status for e in await live.exchanges()] == [200, 200]

    # A second prompt in the same session: the model still sees the first.
    assert await live.prompt('[[fake:say text="a second answer"]]') == "end_turn"
    assert live.session().id == session and texts(live.events("agent_message_chunk")).endswith("a second answer")
    assert "write-hello path=/app/made.txt" in json.dumps((await live.exchanges())[2].request)

    # A model that fails is the provider's failure, whatever the agent says of it.
    with pytest.raises(ProviderError) as failed:
        await live.prompt("[[fake:fail]]")
    assert failed.value.details["status"] == 400

    result = await live.rollout.cleanup()
    asked = [seen for seen in live.model.log if seen.wire]
    lines = (result.rollout_dir / "trajectory" / "llm_trajectory.jsonl").read_text().splitlines()
    assert len(lines) == len(asked)
    assert result.usage.input_tokens == sum(seen.tokens.input for seen in asked if seen.status == 200)
    assert {seen.model for seen in asked} == {"local-model"}
    everything = b"".join(p.read_bytes() for p in result.rollout_dir.rglob("*") if p.is_file())
    assert b"sk-provider-key" not in everything


@each()
async def test_a_cancelled_turn_ends_as_that_and_leaves_nothing_behind(connect, agent, model):
    live = await connect(agent, model)
    assert await live.rollout.sandbox.processes()
    live.model.script("late", [{"text": "Too late.", "delay": 60.0}])
    turn = asyncio.create_task(live.prompt("[[fake:late]]"))
    await live.asked("late")
    await live.session().cancel()
    assert await turn == "cancelled"
    [ended] = live.events("turn_cancelled")
    # OpenHands waits for the model's whole answer before it stops: it is not waited for.
    assert ended["data"]["answered"] is (agent != "openhands")
    await live.rollout.disconnect()
    async with asyncio.timeout(60):  # what was killed with 750 MB is gone a moment later
        while await live.rollout.sandbox.processes():
            await asyncio.sleep(0.1)


@each()
async def test_a_refused_permission_is_asked_for_recorded_and_kept(connect, agent, model):
    live = await connect(agent, model, permissions="reject")
    live.model.script("ask", [{"tools": [{"do": "bash", "command": "mkdir /app/made"}]}, "I may not."])
    await live.prompt("[[fake:ask]]")
    [asked] = live.events("permission_request")
    kinds = {o["optionId"]: o["kind"] for o in asked["data"]["options"]}
    assert kinds[asked["data"]["outcome"]["optionId"]].startswith("reject")
    done = await live.rollout.sandbox.exec(("ls", "/app"), cwd="/")
    assert b"made" not in done.stdout


@pytest.mark.parametrize(
    ("agent", "provider"),
    [
        pytest.param(agent, provider, marks=pytest.mark.xdist_group(f"agent-{agent}"))
        for agent, providers in WIRES.items()
        for provider in providers
    ],
)
async def test_the_other_wires(connect, agent, provider):
    live = await connect(agent, f"{provider}/local-model", reasoning_effort="low")
    assert await live.prompt("[[fake:write-hello path=/app/made.txt]]") == "end_turn"
    assert await live.read("/app/made.txt") == CONTENT
