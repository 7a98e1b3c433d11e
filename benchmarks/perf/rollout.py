"""Rollouts on the embedded sandbox through the user's own command, against the same scripts run by hand.

By hand: `unshare` twice, once for `solve.sh` and once for `test.sh`, on a copy of the task's files. Ours: two boxes, a
snapshot, isolation, the event log and every artifact, which are counted afterwards: there is no fast path.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.perf._measure import Measure

TASK = Path(__file__).parents[2] / "examples" / "tasks" / "hello-file"
FILES = "config.json result.json timing.json prompts.json rewards.jsonl lock.json events.jsonl"
MANY, CONCURRENCY = 100, 8


def _by_hand(folder: Path) -> None:
    """What a script would do: a private mount namespace, the solution, the tests, the reward."""
    for name in ("app", "logs/verifier"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(TASK / "environment/name.txt", folder / "app")
    mounts = f"mkdir -p /app /logs && mount --bind {folder}/app /app && mount --bind {folder}/logs /logs && cd /app"
    flags = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--net", "sh", "-c"]
    if os.geteuid() == 0:
        flags = ["unshare", "--mount", "--pid", "--fork", "--net", "sh", "-c"]
    for script in (TASK / "solution/solve.sh", TASK / "tests/test.sh"):
        subprocess.run([*flags, f"{mounts} && bash {script}"], check=True, capture_output=True)
    assert (folder / "logs/verifier/reward.txt").read_text().strip() == "1"


def _command(work: Path, *more: str) -> list[str]:
    bench = [sys.executable, "-m", "benchflow_core.cli.main", "--quiet", "--json", "eval", "create", "-t", str(TASK)]
    return [*bench, "-a", "oracle", "--sandbox", "local", "-o", str(work / "jobs"), *more]


def _complete(work: Path, expected: int) -> None:
    """Every artifact of every rollout is there, and the score is right."""
    rollouts = list((work / "jobs").glob("*/*/result.json"))
    assert len(rollouts) == expected, len(rollouts)
    for path in rollouts:
        assert json.loads(path.read_text())["rewards"] == {"reward": 1.0}
        assert all((path.parent / name).stat().st_size for name in FILES.split())


async def _inside(work: Path, runs: int) -> float:
    """The fastest rollout of several inside one process, as a job runs them."""
    from benchflow_core.rollout import Host, Rollout, RolloutConfig

    best = float("inf")
    async with Host(env={**os.environ, "BENCHFLOW_CACHE": str(work / "cache")}) as host:
        for _ in range(runs + 1):
            start = time.perf_counter()
            rollout = await Rollout.create(
                RolloutConfig(TASK, agent="oracle", sandbox="local", jobs_dir=work / "jobs"), host
            )
            result = await rollout.run()
            best = min(best, time.perf_counter() - start)
            assert result.rewards == {"reward": 1.0}, result.error
    return best


def measure(runs: int) -> list[Measure]:
    env = {**os.environ, "BENCHFLOW_QUIET": "1"}
    with tempfile.TemporaryDirectory(prefix="benchflow-perf-") as temporary:
        work = Path(temporary)
        env["BENCHFLOW_CACHE"] = str(work / "cache")
        hand = whole = float("inf")
        for n in range(runs):
            start = time.perf_counter()
            _by_hand(work / f"hand-{n}")
            hand = min(hand, time.perf_counter() - start)
            start = time.perf_counter()
            subprocess.run(_command(work), env=env, check=True, capture_output=True)
            whole = min(whole, time.perf_counter() - start)
        _complete(work, runs)
        shutil.rmtree(work / "jobs")
        inside = asyncio.run(_inside(work, runs))
        _complete(work, runs + 1)
        shutil.rmtree(work / "jobs")
        start = time.perf_counter()
        subprocess.run(
            _command(work, "--trials", str(MANY), "-c", str(CONCURRENCY)), env=env, check=True, capture_output=True
        )
        many = time.perf_counter() - start
        _complete(work, MANY)
    return [
        Measure(
            "one rollout / two unshare runs by hand",
            inside / hand,
            "x",
            5.0,
            f"{inside * 1e3:.0f} ms against {hand * 1e3:.0f} ms",
        ),
        Measure("whole command, one rollout", whole, "s", 1.0),
        Measure(
            f"seconds per rollout, {MANY} at concurrency {CONCURRENCY}",
            many / MANY,
            "s",
            1 / 15,
            f"{MANY / many:.0f} per second",
        ),
    ]
