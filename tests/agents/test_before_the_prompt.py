"""What fails before an agent took its first prompt is never scored; what fails after it always is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchflow_core.contracts.scenes import Role, Scene, Turn
from benchflow_core.rollout import Rollout, RolloutConfig

EXAMPLE = Path(__file__).parents[2] / "examples" / "tasks" / "hello-file"
PROGRAM = """
import json, os, sys

def send(**fields):
    print(json.dumps({"jsonrpc": "2.0", **fields}), flush=True)

again = os.path.exists("/tmp/second-time")
open("/tmp/second-time", "w").close()
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        send(id=number, result={"protocolVersion": 1, "agentCapabilities": {}, "authMethods": [{"id": "key"}]})
    elif method == "session/new":
#SESSION#
        send(id=number, result={"sessionId": "s"})
#OPENED#
    elif method == "session/prompt":
        os.system('echo "Hello, $(cat /app/name.txt)!" > /app/hello.txt')
        send(id=number, result={"stopReason": "end_turn"})
#PROMPTED#
"""
REFUSAL = 'send(id=number, error={"code": -32603, "message": "native binary not found"}); continue'
LOGIN = 'send(id=number, error={"code": -32000, "message": "Authentication required"}); continue'


def manifest(folder: Path, *, session: str = "pass", opened: str = "pass", prompted: str = "pass") -> str:
    """An agent of its own; `session`, `opened` and `prompted` run at session/new, after it, and after a prompt."""
    program = PROGRAM
    for mark, code in (("#SESSION#", session), ("#OPENED#", opened), ("#PROMPTED#", prompted)):
        program = program.replace(mark, f"        {code}")
    path = folder / "agent.toml"
    launch = json.dumps(["python3", "-c", program])
    path.write_text(f'name = "odd"\nversion = "1.0.0"\nlaunch = {launch}\n')
    return str(path)


async def run(tmp_path: Path, **more: object):
    config = RolloutConfig(EXAMPLE, sandbox="local", jobs_dir=tmp_path / "jobs", **more)
    return await (await Rollout.create(config)).run()


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"session": REFUSAL}, id="session-refused"),
        pytest.param({"session": LOGIN}, id="login-demanded"),
        pytest.param({"session": "os._exit(3)"}, id="ended-at-session"),
        pytest.param({"opened": "os._exit(3)"}, id="ended-before-prompt"),
    ],
)
async def test_a_failure_before_the_first_prompt_is_unscored_and_tried_again(tmp_path: Path, how: dict) -> None:
    result = await run(tmp_path, agent=manifest(tmp_path, **how))
    info = result.error_info
    assert result.rewards is None
    assert (info["kind"], info["code"], info["retryable"]) == ("infrastructure", "agent_start_error", True), info
    assert info["remedy"], "it says what to do"


async def test_a_prompt_that_is_never_reached_in_time_is_unscored(tmp_path: Path) -> None:
    slow = manifest(tmp_path, session="import time; time.sleep(60)")
    result = await run(tmp_path, agent=slow, timeout=2.0)
    assert result.rewards is None and result.error_info["code"] == "agent_start_error"


@pytest.mark.parametrize(
    ("how", "scenes"),
    [
        pytest.param({"session": f"if again:\n            {REFUSAL}"}, (1, 1), id="second-session-refused"),
        pytest.param({"prompted": "os._exit(0)"}, (2,), id="ended-between-turns"),
        pytest.param({"prompted": "os.close(0); import time; time.sleep(60)"}, (2,), id="closed-its-input"),
    ],
)
async def test_a_failure_after_the_first_prompt_is_the_agents_and_verified(
    tmp_path: Path, how: dict, scenes: tuple[int, ...]
) -> None:
    """`scenes`: how many turns each has."""
    role = Role("agent", manifest(tmp_path, **how))
    played = [Scene(str(number), [role], [Turn("agent")] * turns) for number, turns in enumerate(scenes)]
    result = await run(tmp_path, scenes=played)
    assert result.rewards == {"reward": 1.0}
    assert result.error_info["kind"] == "agent", result.error_info


def test_a_claim_that_a_login_is_needed_stops_no_job(tmp_path: Path) -> None:
    agent = manifest(tmp_path, session=LOGIN)
    argv = [sys.executable, "-m", "benchflow_core.cli.main", "eval", "create", "-t", str(EXAMPLE), "-a", agent]
    argv += ["--sandbox", "local", "--trials", "3", "-c", "1", "--max-retries", "0"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    results = [json.loads(p.read_text()) for p in tmp_path.glob("jobs/*/*/result.json")]
    assert [r["error_info"]["code"] for r in results] == ["agent_start_error"] * 3, done.stdout + done.stderr
