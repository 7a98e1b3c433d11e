"""Each real agent with a model that it has never heard of, and what it asks beside the model that it was given."""

from __future__ import annotations

import json
import os

import pytest

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]

UNKNOWN = "never-heard-of-1"
SLOW = (
    pytest.mark.slow_agents,
    pytest.mark.skipif(not os.environ.get("BENCHFLOW_SLOW_AGENTS"), reason="set BENCHFLOW_SLOW_AGENTS=1 to run it"),
)
PROVIDERS = {
    "pi": "anthropic",
    "opencode": "anthropic",
    "claude": "anthropic",
    "codex": "openai",
    "gemini": "gemini",
    "acpx/pi": "anthropic",
    "openhands": "anthropic",
    "openclaw": "anthropic",
}


def each() -> pytest.MarkDecorator:
    cases = [
        pytest.param(
            agent,
            f"{provider}/{UNKNOWN}",
            marks=(pytest.mark.xdist_group(f"agent-{agent}"), *(SLOW if agent in ("openhands", "openclaw") else ())),
            id=agent.replace("/", "-"),
        )
        for agent, provider in PROVIDERS.items()
    ]
    return pytest.mark.parametrize(("agent", "model"), cases)


def only(model: object, name: str) -> None:
    """The provider has one model: whoever asks for another gets a 404."""
    model.models, model.known_only = (name,), True  # type: ignore[attr-defined]


@each()
async def test_an_agent_works_with_a_model_it_has_never_heard_of(connect, local_model, agent, model):
    only(local_model, UNKNOWN)
    live = await connect(agent, model)
    assert await live.prompt("[[fake:write-hello path=/app/made.txt]]") == "end_turn"
    assert await live.read("/app/made.txt") == "hello from the local model\n"
    result = await live.rollout.cleanup()
    assert {seen.model for seen in local_model.log if seen.wire} == {UNKNOWN}
    lines = (result.rollout_dir / "trajectory" / "llm_trajectory.jsonl").read_text().splitlines()
    assert [json.loads(line)["error"] for line in lines] == [None] * len(lines)


@pytest.mark.xdist_group("agent-gemini")
@pytest.mark.parametrize("setting", ["same", "own", "refuse"])
async def test_gemini_asks_another_model_than_the_one_it_was_given(connect, local_model, setting):
    """For this model, the one of the public documents, the CLI takes another one by itself."""
    given, taken = "gemini-3.5-flash", "gemini-3.8-flash"
    live = await connect("gemini", f"gemini/{given}", helper_models=setting)
    if setting == "refuse":
        with pytest.raises(Exception, match=f"model '{taken}' is not declared"):
            await live.prompt("[[fake:write-hello path=/app/made.txt]]")
    else:
        assert await live.prompt("[[fake:write-hello path=/app/made.txt]]") == "end_turn"
    result = await live.rollout.cleanup()
    answered_by = {"same": given, "own": taken, "refuse": None}[setting]
    assert {seen.model for seen in local_model.log if seen.wire} == ({answered_by} if answered_by else set())
    counted = result.usage_details["helper_models"]["agent"][taken]
    assert counted["answered_by"] == answered_by and counted["requests"] >= 1
    assert any(taken in notice for notice in result.notices)
    if answered_by:
        assert result.usage.input_tokens == counted["input_tokens"] > 0
        lines = (result.rollout_dir / "trajectory" / "llm_trajectory.jsonl").read_text().splitlines()
        said = [json.loads(line)["metadata"] for line in lines]
        assert {(one["request_model"], one.get("answered_by")) for one in said} == {
            (taken, given if setting == "same" else None)
        }
