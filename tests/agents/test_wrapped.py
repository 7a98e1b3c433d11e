"""`acpx/<agent>`: the same agents with another client between them and us."""

from __future__ import annotations

import asyncio

import pytest

from benchflow_core.errors import ProviderError

pytestmark = [pytest.mark.agents, pytest.mark.xdist_group("agent-acpx")]
CONTENT = "hello from the local model\n"


async def test_turns_agree_in_gateway_box_and_events(connect, texts):
    live = await connect("acpx/opencode", "vllm/local-model")
    assert await live.prompt("[[fake:write-hello path=/app/made.txt]]") == "end_turn"
    assert await live.read("/app/made.txt") == CONTENT
    assert texts(live.events("agent_message_chunk")).endswith("Done: the file is written.")
    [call] = {e["data"]["toolCallId"] for e in live.events("tool_call")}
    updates = [e["data"] for e in live.events("tool_call_update") if e["data"]["toolCallId"] == call]
    assert updates[-1]["status"] == "completed"
    assert [e.status for e in await live.exchanges()] == [200, 200]

    assert await live.prompt('[[fake:say text="a second answer"]]') == "end_turn"
    assert texts(live.events("agent_message_chunk")).endswith("a second answer")
    assert "write-hello" in str((await live.exchanges())[2].request)

    turn = asyncio.create_task(live.prompt("[[fake:slow]]"))
    await live.asked("slow")
    await live.session().cancel()
    assert await turn == "cancelled"
    [ended] = live.events("turn_cancelled")
    assert ended["data"]["answered"] is True
    async with asyncio.timeout(60):
        while not any(seen.client_gone for seen in live.model.log if seen.scenario == "slow"):
            await asyncio.sleep(0.05)

    with pytest.raises(ProviderError) as failed:
        await live.prompt("[[fake:fail]]")
    assert failed.value.details["status"] == 400
    await live.rollout.disconnect()
    async with asyncio.timeout(20):  # what was killed may take a moment to be gone
        while await live.rollout.sandbox.processes():
            await asyncio.sleep(0.1)


async def test_a_refused_permission_is_recorded_and_kept(connect):
    live = await connect("acpx/opencode", "vllm/local-model", permissions="reject")
    live.model.script("ask", [{"tools": [{"do": "bash", "command": "mkdir /app/made"}]}, "I may not."])
    await live.prompt("[[fake:ask]]")
    [told] = [e["data"] for e in live.events("notification") if e["data"]["method"] == "_acpx/permission"]
    kinds = {o["optionId"]: o["kind"] for o in told["params"]["options"]}
    assert kinds[told["params"]["outcome"]["optionId"]].startswith("reject")
    done = await live.rollout.sandbox.exec(("ls", "/app"), cwd="/")
    assert b"made" not in done.stdout


async def test_what_the_agent_behind_it_is_told_in_a_session_gets_there(connect):
    """The scripted agent takes its model, its effort and its servers over ACP, and shows them."""
    script = "{otherwise: [{say: hello}]}"
    live = await connect("acpx/scripted", None, agent_options={"script": script}, reasoning_effort="high")
    assert await live.prompt("hello") == "end_turn"
    settings = live.events("session_started")[0]["data"]["settings"]
    assert settings["effort"] == {"value": "high", "option": "effort"}
