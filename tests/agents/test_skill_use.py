"""Real agents find a skill in their own place for skills, load it when the model asks, and it is counted."""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]

MARK = "skill-body-4711"
AGENTS = {
    "pi": ("anthropic/local-model", {"do": "read", "path": "/root/.pi/agent/skills/greeting/SKILL.md"}),
    "opencode": ("vllm/local-model", {"name": "skill", "args": {"name": "greeting"}}),
    "claude": ("anthropic/local-model", {"name": "Skill", "args": {"skill": "greeting"}}),
    "gemini": ("gemini/local-model", {"name": "activate_skill", "args": {"name": "greeting"}}),
    "codex": ("openai/local-model", {"do": "bash", "command": "cat /root/.agents/skills/greeting/SKILL.md"}),
}
"""The model, and the call by which a model loads a skill in that agent."""


@pytest.mark.parametrize(
    ("agent", "model", "call"),
    [pytest.param(n, *v, marks=pytest.mark.xdist_group(f"agent-{n}"), id=n) for n, v in AGENTS.items()],
)
async def test_a_skill_is_found_loaded_and_counted(connect, tmp_path, agent, model, call):
    skill = tmp_path / "skills/greeting"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(f"---\nname: greeting\ndescription: How to greet.\n---\n{MARK}\n")
    live = await connect(agent, model, skills_dir=str(tmp_path / "skills"))
    live.model.script("load", [{"text": "I load it.", "tools": [call]}, {"text": "Done."}])
    assert await live.prompt("[[fake:load]]") == "end_turn"
    first, *_, last = [json.dumps(seen.body) for seen in live.model.log if seen.scenario == "load"]
    assert MARK not in first, "nothing is pasted into a prompt"
    assert MARK in last, "the agent gave the skill to the model"
    result = await live.rollout.cleanup()
    assert result.n_skill_invocations == 1
    lines = (result.rollout_dir / "trajectory/acp_trajectory.jsonl").read_text().splitlines()
    [used] = [row for row in map(json.loads, lines) if row.get("kind") == "skill"]
    assert (used["type"], used["skill"]) == ("tool_call", "greeting")
