"""`bench eval metrics` on 10,000 finished rollouts, against a loop that reads the same files with plain `json`.

Cold: there is no index yet. Warm: there is one, and every file is still looked at. The numbers it prints are checked.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.perf._measure import Measure, cpu_seconds

TASKS, TRIALS = 1000, 10
PLAIN = """
import json, pathlib, sys
rows = [json.loads(path.read_bytes()) for path in pathlib.Path(sys.argv[1]).glob("*/*/result.json")]
assert sum(row["rewards"]["reward"] for row in rows) == 5000
"""


def _result(task: int, trial: int) -> dict[str, object]:
    """Of the shape and size that a rollout with a few findings leaves."""
    from benchflow_core.contracts.common import Usage
    from benchflow_core.rollout.result import RolloutResult

    kinds = ("adapter", "agent", "driver", "gateway", "sandbox", "verifier")
    finding = {"code": "interpreter-hook", "path": "/usr/lib/python3/x.pth", "action": "disarmed", "why": "it is code"}
    return RolloutResult(
        task_name=f"task-{task}",
        rollout_name=f"task-{task}__{trial:08x}",
        agent="some-agent",
        model="provider/model-1",
        sandbox="box",
        rewards={"reward": float((task + trial) % 2)},
        usage=Usage(input_tokens=12_000, output_tokens=900, cost_usd=0.01, source="provider_response"),
        timing={"environment_setup": 1.0, "agent_execution": 60.0, "verifier": 2.0, "total": 63.0},
        findings=[finding] * 5,
        tests=[{"name": f"test_{n}", "status": "passed", "message": "", "score": None} for n in range(10)],
        isolation="fresh",
        trial=trial,
        task_digest=f"sha256:{task:064x}",
        plugins=[{"kind": k, "name": k, "distribution": f"benchflow-{k}", "version": "1.0"} for k in kinds],
        started_at="2026-01-01T00:00:00+00:00",
        finished_at="2026-01-01T00:01:03+00:00",
        core_version="1.0",
    ).to_json()


def _make(job: Path) -> None:
    for task in range(TASKS):
        for trial in range(TRIALS):
            folder = job / f"task-{task}__{trial:08x}"
            folder.mkdir(parents=True)
            (folder / "result.json").write_text(json.dumps(_result(task, trial), indent=2))


def _check(command: list[str], env: dict[str, str]) -> None:
    done = subprocess.run([*command, "--json"], env=env, check=True, capture_output=True)
    found = json.loads(done.stdout)
    assert (found["passed"], found["total"], found["tasks"]) == (5000, TASKS * TRIALS, TASKS)


def measure(runs: int) -> list[Measure]:
    with tempfile.TemporaryDirectory(prefix="benchflow-perf-") as temporary:
        jobs, cache = Path(temporary, "jobs"), Path(temporary, "cache")
        _make(jobs / "job")
        time.sleep(2.5)  # the index does not remember files that are younger
        env = {**os.environ, "BENCHFLOW_CACHE": str(cache)}
        command = [sys.executable, "-m", "benchflow_core.cli.main", "eval", "metrics", str(jobs)]
        plain = cold = warm = float("inf")
        for _ in range(min(runs, 5)):
            plain = min(plain, cpu_seconds([sys.executable, "-c", PLAIN, str(jobs)], env))
            shutil.rmtree(cache, ignore_errors=True)
            cold = min(cold, cpu_seconds(command, env))
            warm = min(warm, cpu_seconds(command, env))
        _check(command, env)
    detail = f"reading {TASKS * TRIALS} files with json: {plain:.2f} s"
    return [
        Measure("cold / plain json", cold / plain, "x", 2.5, detail),
        Measure("warm / plain json", warm / plain, "x", 1.0),
        Measure("cold, CPU", cold, "s", 10.0),
        Measure("warm, CPU", warm, "s", 1.0),
    ]
