"""A task of 2,000 files and 20 MB, 20 trials: read, hashed and made into an image once per job, not once per trial.

What a trial of it costs more than one of the same task without the files, in CPU time of the whole process tree, as a
ratio to reading and hashing the files once. Harbor 0.24, measured here: 1.3 s per trial.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.perf._measure import Measure, cpu_minima

TASK = Path(__file__).parents[2] / "examples" / "tasks" / "hello-file"
FILES, BYTES, TRIALS = 2000, 10_240, 20


def _large(folder: Path) -> Path:
    task = shutil.copytree(TASK, folder / "large")
    data = task / "environment" / "data"
    data.mkdir()
    for number in range(FILES):
        (data / f"file-{number}").write_bytes(os.urandom(BYTES))
    dockerfile = task / "environment" / "Dockerfile"
    dockerfile.write_text(dockerfile.read_text() + "COPY data /data\n")
    return task


def _job(task: Path, work: Path, trials: int) -> tuple[list[str], dict[str, str]]:
    bench = [
        sys.executable,
        "-m",
        "benchflow_core.cli.main",
        "--quiet",
        "eval",
        "create",
        "-t",
        str(task),
        "-a",
        "oracle",
    ]
    argv = [*bench, "-e", "local", "-c", "1", "--trials", str(trials), "-o", str(work / "jobs")]
    return argv, {**os.environ, "BENCHFLOW_CACHE": str(work / "cache")}


def _hashing(task: Path) -> tuple[list[str], None]:
    code = f"from pathlib import Path; from benchflow_core.task import task_digest; task_digest(Path({str(task)!r}))"
    return [sys.executable, "-c", code], None


def measure(runs: int) -> list[Measure]:
    with tempfile.TemporaryDirectory(prefix="benchflow-perf-") as name:
        work = Path(name)
        large = _large(work)
        subjects = {
            "hash": _hashing(large),
            "import": _hashing(TASK),
            "small 1": _job(TASK, work, 1),
            "small 20": _job(TASK, work, TRIALS),
            "large 1": _job(large, work, 1),
            "large 20": _job(large, work, TRIALS),
        }
        cost = cpu_minima(subjects, min(runs, 3))
    once = cost["hash"] - cost["import"]
    per_trial = {size: (cost[f"{size} {TRIALS}"] - cost[f"{size} 1"]) / (TRIALS - 1) for size in ("small", "large")}
    more = per_trial["large"] - per_trial["small"]
    detail = f"{more * 1000:.1f} ms more per trial; hashing once {once * 1000:.0f} ms"
    return [Measure("a further trial of a large task", more / once, limit=0.5, detail=detail)]
