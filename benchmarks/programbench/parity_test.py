"""Do converted tasks pay what ProgramBench would? `python -m benchmarks.programbench.parity_test --help`

Takes finished rollouts of converted tasks, has ProgramBench's own scorer judge the same test reports, and compares.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.programbench.benchflow import ConversionError, tasks_folder

TOLERANCE = 0.02
CONFIRMED, DIVERGENT, INSUFFICIENT = "parity-confirmed", "parity-divergent", "insufficient-evidence"
CODES = {CONFIRMED: 0, DIVERGENT: 1, INSUFFICIENT: 3}
SCORER = Path(__file__).parent / "original_score.py"


@dataclass(frozen=True)
class Pair:
    """One rollout, judged twice."""

    task: str
    rollout: str
    ours: float
    original: float

    @property
    def apart(self) -> float:
        return abs(self.ours - self.original)


def rollouts(tasks: Path, jobs: list[Path]) -> list[tuple[Path, dict[str, Any], float, dict[str, Any]]]:
    """Scored rollouts of the tasks: folder, what the task expects, the reward, what the original's scorer is asked."""
    found = []
    for job in jobs:
        for file in sorted(job.glob("**/result.json")):
            report = file.parent / "verifier/report.json"
            if "attempts" in file.parts or not report.is_file():
                continue
            result = json.loads(file.read_text())
            spec_file = tasks / result["task_name"] / "tests/spec.json"
            reward = (result.get("rewards") or {}).get("reward")
            if reward is None or not spec_file.is_file():
                continue
            spec, said = json.loads(spec_file.read_text()), json.loads(report.read_text())
            outputs = {branch: _text(report.parent / f"{branch}.xml") for branch in spec["branches"]}
            case = {"branches": spec["branches"], "outputs": outputs, "error": said["error"]}
            found.append((file.parent, spec, float(reward), case))
    return found


def compare(package: Path, tasks: Path, jobs: list[Path]) -> list[Pair]:
    """Every scored rollout with the score ProgramBench's package gives it."""
    found = rollouts(tasks, jobs)
    done = subprocess.run(
        [sys.executable, "-P", str(SCORER)],
        input=json.dumps([case for *_, case in found]),
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        raise ConversionError(f"ProgramBench's scorer in {package} does not run: {last}")
    scores = json.loads(done.stdout)
    return [
        Pair(spec["id"], folder.name, reward, score)
        for (folder, spec, reward, _), score in zip(found, scores, strict=True)
    ]


def verdict(pairs: list[Pair], tolerance: float = TOLERANCE) -> str:
    """One rollout apart is enough against it; for it, scores have to differ, or any rule would fit."""
    if any(pair.apart > tolerance for pair in pairs):
        return DIVERGENT
    return CONFIRMED if len({pair.original for pair in pairs}) > 1 else INSUFFICIENT


def _text(file: Path) -> str | None:
    return file.read_text() if file.is_file() else None


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.programbench.parity_test", description=__doc__)
    parser.add_argument("--programbench-dir", type=Path, required=True, help="the clone whose scorer is asked")
    parser.add_argument("--tasks-dir", type=Path, required=True, help="converted tasks")
    parser.add_argument("--jobs-dir", type=Path, required=True, nargs="+", help="finished jobs on them")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help="(%(default)s)")
    parser.add_argument("--output", type=Path, help="also write the comparison to this file, as JSON")
    asked = parser.parse_args(argv)
    try:
        package = tasks_folder(asked.programbench_dir.expanduser()).parents[2]
        pairs = compare(package, asked.tasks_dir, asked.jobs_dir)
    except ConversionError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    result = verdict(pairs, asked.tolerance)
    for pair in pairs:
        print(f"{pair.rollout}: {pair.ours:.4f} here, {pair.original:.4f} by the scorer of {asked.programbench_dir}")
    print(f"{result}: {len(pairs)} rollouts, at most {max((pair.apart for pair in pairs), default=0):.4f} apart")
    if asked.output:
        record = {"verdict": result, "tolerance": asked.tolerance, "rollouts": [asdict(pair) for pair in pairs]}
        asked.output.write_text(json.dumps(record, indent=2) + "\n")
    return CODES[result]


if __name__ == "__main__":
    sys.exit(main())
