"""Agents that misbehave, through a whole rollout: each ends typed, within its time, and leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchflow_core.rollout import Rollout, RolloutConfig

EXAMPLE = Path(__file__).parents[2] / "examples" / "tasks" / "hello-file"
SOLVE = 'echo "Hello, $(cat /app/name.txt)!" > /app/hello.txt'
MARK = "sleep 86399.25"

PROGRAM = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    answer = {"initialize": json.loads(HELLO), "session/new": {"sessionId": "s"}}.get(message.get("method"), {})
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
"""


@pytest.fixture
def run(tmp_path):
    """One whole rollout of the example with an agent that plays a script; its result and its events."""

    async def one(script=None, *, agent="scripted", host=None, **more):
        options = {"agent_options": {"script": json.dumps(script)}} if script is not None else {}
        config = RolloutConfig(EXAMPLE, agent=agent, sandbox="local", jobs_dir=tmp_path / "jobs", **options, **more)
        result = await (await Rollout.create(config, host)).run()
        lines = (result.rollout_dir / "events.jsonl").read_text().splitlines()
        return result, [json.loads(line) for line in lines]

    return one


def processes() -> str:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(found)


async def test_a_flood_of_stderr_is_capped_and_harms_nothing(run):
    line = "noise " * 10_000
    result, _ = await run([{"run": SOLVE}, *({"stderr": line} for _ in range(80)), {"say": "Done."}])
    assert result.rewards == {"reward": 1.0}
    kept = sum(p.stat().st_size for p in (result.rollout_dir / "agent").rglob("*") if p.is_file())
    assert 0 < kept < 4_000_000


async def test_a_line_of_300_mb_is_the_agents_failure_and_what_it_did_is_verified(run):
    endless = {"garbage": {"text": "x" * 100_000, "repeat": 3_000, "newline": True}}
    result, _ = await run([{"run": SOLVE}, endless, {"say": "Done."}])
    assert result.error_info["kind"] == "agent" and "line" in result.error
    assert result.rewards == {"reward": 1.0}


async def test_json_that_is_no_object_is_passed_over(run):
    garbage = [{"garbage": text} for text in ("123\n", "null\n", '"x"\n', "[[]]\n")]
    result, _ = await run([*garbage, {"run": SOLVE}, {"say": "Done."}])
    assert result.error is None and result.rewards == {"reward": 1.0}


async def test_one_that_ignores_cancel_is_killed_when_its_time_is_up(run):
    result, events = await run([{"run": SOLVE}, {"ignore_cancel": True}, {"hang": True}], timeout=3)
    [cancelled] = [e for e in events if e["kind"] == "turn_cancelled"]
    assert cancelled["data"]["answered"] is False
    if result.error_info["details"].get("reason") == "host-suspended":  # this machine stood still, and it is said
        return
    assert result.error_info["code"] == "agent_timeout" and "agent-timeout" in result.flags
    assert result.rewards == {"reward": 1.0}


async def test_children_it_leaves_behind_go_with_the_box(run):
    result, _ = await run([{"run": SOLVE}, {"background": f"setsid {MARK}"}, {"say": "Done."}])
    assert result.rewards == {"reward": 1.0}
    assert MARK not in processes()


def manifest(tmp_path: Path, hello: dict, **more: str) -> str:
    """An agent of its own, by a manifest: it answers `initialize` with `hello`."""
    program = PROGRAM.replace("HELLO", repr(json.dumps(hello)))
    path = tmp_path / "agent.toml"
    lines = ['name = "odd"', 'version = "1.0.0"', f"launch = {json.dumps(['python3', '-c', program])}"]
    path.write_text("\n".join([*lines, *(f"{key} = {value}" for key, value in more.items())]))
    return str(path)


async def test_one_that_speaks_another_protocol_is_told_apart(run, tmp_path):
    result, _ = await run(agent=manifest(tmp_path, {"protocolVersion": 2, "info": {}}))
    assert result.error_info["code"] == "agent_start_error" and "version 2" in result.error
    assert result.rewards is None, "nobody was asked anything yet"


async def test_another_version_than_the_pinned_one_is_refused(run, tmp_path):
    """The layer says one thing, the program another: nothing is measured under a wrong name."""
    hello = {"protocolVersion": 1, "agentInfo": {"name": "odd", "version": "0.9.0"}}
    right, _ = await run(agent=manifest(tmp_path, hello))
    assert right.error is None, "without the promise to report its version nothing is compared"
    wrong, _ = await run(agent=manifest(tmp_path, hello, reports_version="true"))
    assert wrong.error_info["code"] == "configuration_error" and wrong.rewards is None
    assert "0.9.0" in wrong.error and "1.0.0" in wrong.error
