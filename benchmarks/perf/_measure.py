"""Shared by the modules of this folder. CPU time, minimum over several runs, as a ratio to something run beside it:
wall time on a shared machine says more about its neighbours than about us."""

from __future__ import annotations

import argparse
import compileall
import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

Measurement = Callable[[int], "list[Measure]"]


@dataclass(frozen=True, slots=True)
class Measure:
    """One number."""

    name: str
    value: float
    unit: str = "x"
    """`x` is a ratio to the baseline of its module."""
    limit: float | None = None
    """What it may be at most."""
    detail: str = ""

    @property
    def ok(self) -> bool:
        return self.limit is None or self.value <= self.limit


def cpu_seconds(argv: Sequence[str], env: Mapping[str, str] | None = None) -> float:
    """User and system time of one run of a command."""
    process = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)} exited with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def cpu_minima(subjects: Mapping[str, tuple[Sequence[str], Mapping[str, str] | None]], runs: int) -> dict[str, float]:
    """The minimum of each, in turns, so that a busy moment hits all of them alike."""
    found = dict.fromkeys(subjects, float("inf"))
    for _ in range(runs):
        for name, (argv, env) in subjects.items():
            found[name] = min(found[name], cpu_seconds(argv, env))
    return found


def compile_ours() -> None:
    """What pip does for every package it installs, ours and the peers', but not for a checkout like this one."""
    for folder in ("benchflow_core", "bundle", "plugins"):
        compileall.compile_dir(Path(__file__).parents[2] / folder, quiet=2)


def main(modules: Mapping[str, Measurement], argv: Sequence[str] | None = None) -> int:
    """The command line of the folder and of each module. Exit code 1: a limit is exceeded."""
    parser = argparse.ArgumentParser(description="Measure what BenchFlow costs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of: {', '.join(modules)}; default: all")
    parser.add_argument("--runs", type=int, default=10, help="take the minimum of this many runs (default: 10)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--list", action="store_true", help="only list the names")
    options = parser.parse_args(argv)
    if unknown := set(options.names) - set(modules):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are: {', '.join(modules)}")
    if options.list:
        print("\n".join(modules))
        return 0
    compile_ours()
    found = {name: modules[name](options.runs) for name in options.names or modules}
    if options.json:
        print(json.dumps({name: [{**asdict(one), "ok": one.ok} for one in some] for name, some in found.items()}))
    else:
        for name, measures in found.items():
            _show(name, measures)
    return 0 if all(one.ok for measures in found.values() for one in measures) else 1


def _show(name: str, measures: Sequence[Measure]) -> None:
    print(name)
    width = max(len(one.name) for one in measures)
    for one in measures:
        limit = "" if one.limit is None else f"at most {one.limit:g} {one.unit}"
        mark = "" if one.ok else "  EXCEEDED"
        print(f"  {one.name:<{width}}  {one.value:8.2f} {one.unit:<3}  {limit:<15}  {one.detail}{mark}".rstrip())
