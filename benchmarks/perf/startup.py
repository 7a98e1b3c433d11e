"""What it costs to start `bench`, against importing the libraries that it could not do without."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.perf._measure import Measure, cpu_minima, main

BASELINE = "import click, pluggy, importlib.metadata"
THIRD_PARTIES = 100

_PLUGIN = """
from benchflow_core.contracts import AgentSpec, Launch
from benchflow_core.hookspecs import hookimpl

@hookimpl
def benchflow_agent():
    return AgentSpec(summary="third party", prepare=lambda context: Launch(argv=("true",)))
"""


def measure(runs: int) -> list[Measure]:
    """CPU of help, version and list; help and completion again with a hundred plugins more."""
    bench = Path(sys.executable).with_name("bench")
    with tempfile.TemporaryDirectory(prefix="benchflow-perf-") as folder:
        for number in range(THIRD_PARTIES):
            _install(Path(folder), number)
        crowded = {**os.environ, "PYTHONPATH": folder}
        completing = {**crowded, "_BENCH_COMPLETE": "bash_complete", "COMP_WORDS": "bench plug", "COMP_CWORD": "1"}
        seconds = cpu_minima(
            {
                "baseline": ([sys.executable, "-c", BASELINE], None),
                "--version": ([bench, "--version"], None),
                "--help": ([bench, "--help"], None),
                "plugins --help": ([bench, "plugins", "--help"], None),
                "plugins list": ([bench, "plugins", "list"], None),
                "--help, 100 more plugins": ([bench, "--help"], crowded),
                "plugins list --requirements, 100 more": ([bench, "plugins", "list", "--requirements"], crowded),
                "completing a command, 100 more": ([bench], completing),
            },
            runs,
        )
        scans = _scans(folder, runs)
    limits = {"--version": 1.3, "--help": 1.3, "plugins list": 2.0, "--help, 100 more plugins": 1.6}
    baseline = seconds.pop("baseline")
    measures = [Measure("baseline", baseline * 1000, "ms", detail=BASELINE)]
    for name, value in seconds.items():
        measures.append(Measure(name, value / baseline, limit=limits.get(name), detail=f"{value * 1000:.0f} ms CPU"))
    return measures + scans


def _install(site: Path, number: int) -> None:
    name = f"third_party_{number}"
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    requirement = "Requires-Dist: benchflow-core>=0.8.0.dev0,<0.9"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nSummary: Number {number}.\n{requirement}\n"
    (info / "METADATA").write_text(metadata)
    (info / "entry_points.txt").write_text(f"[benchflow.agents]\nthird-{number} = {name}\n")
    (site / f"{name}.py").write_text(_PLUGIN)


def _scans(site: str, runs: int) -> list[Measure]:
    """Finding every entry point: ours beside the standard library's, both with cold caches, in this process."""
    from benchflow_core.plugins.index import Index

    def theirs() -> None:
        importlib.invalidate_caches()
        importlib.metadata.entry_points()

    sys.path.append(site)
    try:
        ours, reference = _fastest(lambda: Index(), runs), _fastest(theirs, runs)
    finally:
        sys.path.remove(site)
    detail = f"{ours * 1000:.1f} ms against {reference * 1000:.1f} ms of importlib.metadata.entry_points()"
    return [Measure("scan with 100 more plugins", ours / reference, limit=1.5, detail=detail)]


def _fastest(call: Callable[[], object], runs: int) -> float:
    best = float("inf")
    for _ in range(runs):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


if __name__ == "__main__":
    sys.exit(main({"startup": measure}))
