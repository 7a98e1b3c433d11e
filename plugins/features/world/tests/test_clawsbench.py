"""Every task of ClawsBench on the embedded sandbox: its solution passes, and doing nothing does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TASKS = Path(__file__).parents[4] / "benchmarks" / "clawsbench" / "tasks"


@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1.0), ("nop", 0.0)])
def test_all_tasks(agent, reward, tmp_path):
    argv = [sys.executable, "-m", "benchflow_core.cli.main", "--json", "eval", "create", "--tasks-dir", str(TASKS)]
    argv += ["-a", agent, "--sandbox", "local", "-c", "2", "-o", str(tmp_path / "jobs")]
    env = {**os.environ, "HOME": str(tmp_path), "NO_COLOR": "1"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=580, check=False)
    results = [json.loads(path.read_text()) for path in (tmp_path / "jobs").glob("*/*/result.json")]
    got = {result["task_name"]: (result["rewards"] or {}).get("reward") for result in results}
    assert got == dict.fromkeys((path.name for path in TASKS.iterdir()), reward), (got, done.stderr)
    used = {service for result in results for service in result["world"]["services"]}
    assert len(got) >= 8 and used == {"gmail", "slack", "gcal", "gdoc", "gdrive"}
