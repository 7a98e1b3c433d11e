"""The names that the documents tell users to catch, also in the phases called one by one."""

from __future__ import annotations

from pathlib import Path

import benchflow as bf
import pytest

from benchflow_core.errors import AgentCrashed, AgentTimeout, ConnectionLost

EXAMPLE = Path(__file__).parents[2] / "examples" / "tasks" / "hello-file"


async def start(tmp_path: Path, **more: object) -> bf.Rollout:
    rollout = await bf.Rollout.create(bf.RolloutConfig(EXAMPLE, sandbox="local", jobs_dir=tmp_path / "jobs", **more))
    await rollout.setup()
    await rollout.start()
    await rollout.install_agent()
    return rollout


@pytest.mark.parametrize(
    ("steps", "caught"),
    [
        pytest.param("- hang", TimeoutError, id="timeout"),
        pytest.param("- crash: 3", ConnectionError, id="closed-pipe"),
        pytest.param("- error: {code: -32603, message: sorry}", bf.ACPError, id="protocol"),
    ],
)
async def test_an_agents_failure_is_caught_by_its_documented_name(
    tmp_path: Path, steps: str, caught: type[Exception]
) -> None:
    script = f"turns:\n  - [{{say: hello}}]\n  -\n    {steps}\n"
    rollout = await start(tmp_path, agent="scripted", agent_options={"script": script}, timeout=20.0)
    try:
        await rollout.execute()
        rollout.config = rollout.config.model_copy(update={"timeout": 1.0})
        with pytest.raises(caught) as failed:
            await rollout.execute()
        assert isinstance(failed.value, bf.BenchflowError) and str(failed.value)
    finally:
        await rollout.cleanup()


def test_each_keeps_its_message_and_remedy() -> None:
    for kind in (AgentTimeout, AgentCrashed, ConnectionLost):
        error = kind("what happened.", remedy="What to do.", details={"a": 1})
        assert str(error) == "what happened. What to do." and error.to_json()["details"] == {"a": 1}


def test_pi_says_which_key_it_takes_and_offers_it_to_no_other_provider() -> None:
    from benchflow_agent_pi.plugin import benchflow_agent

    options = benchflow_agent().auth
    assert "ANTHROPIC_API_KEY" in [option.hint for option in options]
    assert not any(option.env for option in options if not option.native)
