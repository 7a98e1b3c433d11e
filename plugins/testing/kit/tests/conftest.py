"""Helpers for running the kit in a pytest of its own, as a plugin's author does."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).parent
Outcomes = dict[tuple[str, str], set[str]]


@pytest.fixture(scope="session")
def run_kit() -> Callable[..., Outcomes]:
    """Runs pytest on a folder; gives (class, test without parameters) to the outcomes seen."""

    def run(
        folder: Path, tests: Sequence[str] = (), *, env: Mapping[str, str] | None = None, workers: int = 0
    ) -> Outcomes:
        report, log = folder / "report.xml", folder / "output.txt"
        argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", f"--junitxml={report}"]
        argv += ["--timeout=240", "--timeout-method=signal"]
        argv += ["--rootdir", str(folder), "-c", os.devnull, *(["-n", str(workers)] if workers else []), *tests]
        path = os.pathsep.join([str(folder), str(HERE), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
        env = {**os.environ, "PYTHONPATH": path, **(env or {})}
        # Into a file: a broken sandbox leaves processes behind that would hold a pipe open for ever.
        with log.open("wb") as output:
            done = subprocess.run(
                argv,
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
                timeout=900,
            )
        assert report.exists() and done.returncode in (0, 1), log.read_text(errors="replace")[-4000:]
        return outcomes(report)

    return run


def outcomes(report: Path) -> Outcomes:
    found: Outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        key = (case.get("classname", "").rpartition(".")[2], case.get("name", "").partition("[")[0])
        kinds = {child.tag for child in case if child.tag in ("failure", "error", "skipped")}
        found.setdefault(key, set()).update(kinds or {"passed"})
    return found


@pytest.fixture(scope="session")
def install() -> Callable[..., None]:
    """Puts a plugin on a folder's import path with the metadata of an installed distribution."""

    def write(
        folder: Path,
        dist: str,
        point: tuple[str, str, str],
        files: Mapping[str, str],
        requires: str = "benchflow-core>=0.8.dev0",
    ) -> None:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        info = folder / f"{dist.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        head = f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.0\n"
        (info / "METADATA").write_text(head + (f"Requires-Dist: {requires}\n" if requires else ""))
        group, name, value = point
        (info / "entry_points.txt").write_text(f"[benchflow.{group}]\n{name} = {value}\n")

    return write
