"""What the engine itself costs per rollout: jobs of an agent and a sandbox that do nothing, through the user's command.

Every artifact is written and counted afterwards. The plugins lie in `noop/`, seen only by these processes. CPU time of
one rollout is the difference between a large job and a job of one; beside it, the same files written by a bare loop.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.perf._measure import Measure

HERE = Path(__file__).parent
TASK = HERE.parents[1] / "examples" / "tasks" / "hello-file"
FILES = [
    *(f"{name}.json" for name in ("config", "result", "timing", "prompts", "lock", "sandbox")),
    "rewards.jsonl",
    "events.jsonl",
    "trajectory/acp_trajectory.jsonl",
    "verifier/reward.txt",
]
SMALL, LARGE = 1_000, 10_000
MEMORY_LIMIT = 4.0
"""Kilobytes by which a process grows per rollout: what is planned, not what is finished."""


@dataclass(frozen=True)
class Cost:
    cpu: float
    peak_kb: int


def _run(work: Path, count: int, task: Path = TASK) -> Cost:
    """One job. `wait4` tells its CPU time and its peak memory."""
    job = f"n{count}"
    argv = [sys.executable, "-m", "benchflow_core.cli.main", "--quiet", "eval", "create", "-t", str(task)]
    argv += ["-a", "perf-noop", "-e", "perf-noop", "-o", str(work / "jobs"), "--job-name", job]
    argv += ["--trials", str(count), "-c", "8"]
    path = os.pathsep.join(filter(None, [str(HERE / "noop"), os.environ.get("PYTHONPATH", "")]))
    env = {**os.environ, "PYTHONPATH": path, "BENCHFLOW_CACHE": str(work / "cache")}
    process = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, said.decode()
    _complete(work / "jobs" / job, count)
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss)


def _complete(job: Path, count: int) -> None:
    """Every artifact of every rollout is there, and all of them count."""
    summary = json.loads((job / "summary.json").read_text())
    assert (summary["total"], summary["passed"]) == (count, count), summary
    folders = [entry for entry in os.scandir(job) if entry.is_dir()]
    assert len(folders) == count, len(folders)
    for folder in folders[:: max(count // 200, 1)]:
        assert all((Path(folder.path) / name).exists() for name in FILES), folder.path


def _by_hand(job: Path, target: Path, count: int) -> float:
    """CPU seconds per rollout of writing the same files, each replaced in one step."""
    one = next(Path(entry.path) for entry in os.scandir(job) if entry.is_dir())
    contents = {name: (one / name).read_bytes() for name in FILES}
    before = resource.getrusage(resource.RUSAGE_SELF)
    for number in range(count):
        folder = target / str(number)
        for name in ("trajectory", "verifier"):
            (folder / name).mkdir(parents=True)
        for name, data in contents.items():
            made = folder / f"{name}.new"
            made.write_bytes(data)
            made.replace(folder / name)
    after = resource.getrusage(resource.RUSAGE_SELF)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) / count


def _large_task(work: Path) -> Path:
    """2,000 files, 20 MB."""
    task = Path(shutil.copytree(TASK, work / "large-task"))
    for number in range(2_000):
        path = task / "environment" / "data" / f"{number % 40}" / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(number.to_bytes(4) * 2_560)
    return task


def _large_against_small(work: Path) -> tuple[float, float]:
    """CPU seconds of 20 trials of a large task more than of a small one, and of reading and hashing it once."""
    large = _large_task(work)
    extra = float("inf")
    for number in range(2):
        costs = [_run(work / f"{task.name}-{number}", 20, task).cpu for task in (TASK, large)]
        extra = min(extra, costs[1] - costs[0])
    before = resource.getrusage(resource.RUSAGE_SELF)
    digest = hashlib.sha256()
    for path in sorted(large.rglob("*")):
        if path.is_file():
            digest.update(path.read_bytes())
    after = resource.getrusage(resource.RUSAGE_SELF)
    return extra, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(runs: int) -> list[Measure]:
    with tempfile.TemporaryDirectory(prefix="benchflow-perf-") as temporary:
        work = Path(temporary)
        costs: dict[int, Cost] = {}
        # Nothing is deleted in between: ext4 passes over what was deleted lately, name by name, for every new file.
        for size, times in ((1, 3), (SMALL, min(runs, 3)), (LARGE, 1)):
            for number in range(max(times, 1)):
                cost = _run(work / f"{size}-{number}", size)
                costs[size] = min(costs.get(size, cost), cost, key=lambda c: c.cpu)
        hand = _by_hand(work / f"{LARGE}-0" / "jobs" / f"n{LARGE}", work / "hand", 300)
        extra, once = _large_against_small(work)
    each = {size: (costs[size].cpu - costs[1].cpu) / (size - 1) for size in (SMALL, LARGE)}
    grown = (costs[LARGE].peak_kb - costs[SMALL].peak_kb) / (LARGE - SMALL)
    return [
        Measure(f"CPU per rollout, {SMALL} rollouts", each[SMALL] * 1e3, "ms", 5.0),
        Measure(f"CPU per rollout, {LARGE} rollouts", each[LARGE] * 1e3, "ms", 5.0),
        Measure(f"{LARGE} rollouts / {SMALL}, per rollout", each[LARGE] / each[SMALL], "x", 1.25),
        Measure(
            "per rollout / writing its files by hand", each[SMALL] / hand, "x", None, f"by hand {hand * 1e3:.2f} ms"
        ),
        Measure("2,000-file task x 20 trials / hashing it once", extra / once, "x", 15.0, f"{extra:.2f} s"),
        Measure("memory per rollout", grown, "kB", MEMORY_LIMIT, f"peak {costs[LARGE].peak_kb / 1024:.0f} MB"),
    ]


if __name__ == "__main__":
    from benchmarks.perf._measure import main

    sys.exit(main({"jobs": measure}))
