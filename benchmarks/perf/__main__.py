"""Runs the modules of this folder. Each has `measure(runs: int) -> list[Measure]`."""

import sys
from importlib import import_module
from pathlib import Path

from benchmarks.perf._measure import main

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))

if __name__ == "__main__":
    sys.exit(main({name: import_module(f"benchmarks.perf.{name}").measure for name in NAMES}))
