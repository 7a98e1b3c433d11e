"""Agents whose reports break types and ranges: their own error, what they did is verified, and the job is readable."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchflow_core.contracts.common import Usage
from benchflow_core.rollout import Rollout, RolloutConfig, RolloutResult

EXAMPLE = Path(__file__).parents[2] / "examples" / "tasks" / "hello-file"
SOLVE = 'echo "Hello, $(cat /app/name.txt)!" > /app/hello.txt'
HUGE = "9" * 400
FIRST_PROMPT = 100_002
"""The id of the first session/prompt: after initialize and session/new."""


def message(**fields: str) -> dict:
    """One line on the agent's standard output, as it is written."""
    return {"garbage": "{" + ", ".join(f'"{key}": {value}' for key, value in fields.items()) + "}"}


def update(kind: str, **fields: str) -> dict:
    inside = "".join(f', "{key}": {value}' for key, value in fields.items())
    params = f'{{"sessionId": "x", "update": {{"sessionUpdate": "{kind}"{inside}}}}}'
    return message(jsonrpc='"2.0"', method='"session/update"', params=params)


def answer(usage: str) -> dict:
    return message(jsonrpc='"2.0"', id=str(FIRST_PROMPT), result=f'{{"stopReason": "end_turn", "usage": {usage}}}')


BROKEN = {
    "tokens of 1e308": answer('{"inputTokens": 1e308, "outputTokens": 1e308}'),
    "tokens of 400 digits": answer(f'{{"inputTokens": {HUGE}}}'),
    "tokens that are text": answer('{"inputTokens": "many"}'),
    "tokens below zero": answer('{"outputTokens": -1}'),
    "usage that is a list": answer("[]"),
    "a cost of 1e308": update("usage_update", used="1", size="2", cost='{"amount": 1e308, "currency": "USD"}'),
    "a cost of 400 digits": update("usage_update", used="1", size="2", cost=f'{{"amount": {HUGE}, "currency": "USD"}}'),
    "a window of 400 digits": update("usage_update", used=HUGE, size="2"),
    "a call's id that is a list": update("tool_call", toolCallId='["x"]', title='"x"'),
    "a call's id of 100 kB": update("tool_call", toolCallId=f'"{"x" * 100_000}"', title='"x"'),
    "a status that is an object": update("tool_call_update", toolCallId='"x"', status='{"a": 1}'),
    "content that is text": update("tool_call", toolCallId='"x"', content='"x"'),
    "a chunk that is a number": update("agent_message_chunk", content="5"),
    "a plan of numbers": update("plan", entries="[1, 2]"),
}


@pytest.mark.parametrize("what", BROKEN)
async def test_what_the_protocol_does_not_allow_is_the_agents_error(what: str, tmp_path: Path) -> None:
    script = json.dumps([{"run": SOLVE}, BROKEN[what], {"wait": 0.5}, {"say": "Done."}])
    config = RolloutConfig(EXAMPLE, agent="scripted", sandbox="local", jobs_dir=tmp_path,
                           agent_options={"script": script})  # fmt: skip
    result = await (await Rollout.create(config)).run()
    assert result.error_info and result.error_info["code"] == "agent_protocol_error", result.error
    assert result.rewards == {"reward": 1.0}, "what it left is verified as it stands"
    assert "agent-protocol-error" in result.flags


def test_a_job_of_such_an_agent_is_shown_and_counted(tmp_path: Path) -> None:
    cost = update("usage_update", used="1", size="2", cost='{"amount": 1e308, "currency": "USD"}')
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"run": SOLVE}, cost, answer('{"inputTokens": 1e308, "outputTokens": 1e308}')]))

    def bench(*args: str) -> str:
        argv = [sys.executable, "-m", "benchflow_core.cli.main", *args]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    made = bench("eval", "create", "-t", str(EXAMPLE), "-a", "scripted", "--sandbox", "local", "--trials", "2",
                 "--agent-option", f"script={script}", "--job-name", "odd")  # fmt: skip
    assert "Score: 2/2" in made
    for shown in (bench("eval", "show", "jobs/odd"), bench("eval", "metrics", "jobs"), bench("eval", "list", "jobs")):
        assert "2/2" in shown
    json.loads((tmp_path / "jobs" / "odd" / "summary.json").read_text(), parse_constant=pytest.fail)


def test_no_absurd_number_gets_into_a_result() -> None:
    """Wherever it came from: numbers that are not known are null."""
    usage = Usage(input_tokens=10**400, output_tokens=5, cost_usd=float("inf"))
    result = RolloutResult("t", "r", "a", None, "s", usage=usage, loop={"rounds": [{"reward": float("nan")}, 1.5]})
    written = result.to_json()
    assert written["agent_result"]["n_input_tokens"] is None and written["agent_result"]["cost_usd"] is None
    assert written["agent_result"]["n_output_tokens"] == 5
    assert written["loop"] == {"rounds": [{"reward": None}, 1.5]}
