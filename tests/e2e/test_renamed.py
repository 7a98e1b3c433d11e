"""The core names no backend: every plugin is installed under another entry-point name, and this suite still passes."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SUITE = sorted(path.name for path in HERE.glob("test_*.py") if path.name != Path(__file__).name)
PREFIX = "x-"
ENV = {**os.environ, "BENCHFLOW_TEST_PREFIX": PREFIX}
"""As it is outside of tests, which hide the Docker engine from those that do not ask for it."""
_EP_GROUP = re.compile(r'^\[project\.entry-points\."benchflow\.(?!commands)\w+"\]$')
"""Commands keep their names: those are what the suite types."""
_EP = re.compile(r"^([\w.+-]+)( = )")


FAILED = ("failure", "error")


@dataclass
class Outcome:
    """Of the tests in one file."""

    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def rename(pyproject: Path) -> int:
    """Put a prefix before every entry-point name of a plugin; returns how many there were."""
    inside, count, lines = False, 0, []
    for line in pyproject.read_text().splitlines():
        if line.startswith("["):
            inside = bool(_EP_GROUP.match(line))
        elif inside and _EP.match(line):
            line, count = _EP.sub(rf"{PREFIX}\1\2", line), count + 1
        lines.append(line)
    pyproject.write_text("\n".join(lines) + "\n")
    return count


pytestmark = pytest.mark.skipif(bool(os.environ.get("BENCHFLOW_TEST_PREFIX")), reason="already inside")


@pytest.fixture(scope="module")
def renamed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with other names and an environment of its own, made once for all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "renamed"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            _install(folder)
            (folder / "ready").touch()
    return folder


def _install(folder: Path) -> None:
    uv, source, venv = ROOT / ".venv" / "bin" / "uv", folder / "source", folder / "venv"
    keep = shutil.ignore_patterns(".venv", ".git", "__pycache__", "jobs", "dist", "site", ".*_cache")
    shutil.copytree(ROOT, source, ignore=keep, symlinks=True)
    packages = [p.parent for p in source.glob("plugins/*/*/pyproject.toml")]
    assert sum(rename(p / "pyproject.toml") for p in packages) >= 7
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, venv], check=True)
    # What they depend on is taken from where we run: only our own packages are installed anew.
    site = next(venv.glob("lib/python*/site-packages"))
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    install = [uv, "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--compile-bytecode"]
    subprocess.run([*install, "--python", venv / "bin/python", source, source / "bundle", *packages], check=True)
    names = subprocess.run(
        [venv / "bin/bench", "plugins", "list", "--json"], capture_output=True, text=True, check=True
    )
    assert '"oracle"' not in names.stdout


HALVES = {name: f"renamed-{number % 2}" for number, name in enumerate(SUITE)}
"""Two workers share the files; each runs its own in one pytest, which starts once and fills one cache."""


@pytest.fixture(scope="module")
def outcomes(renamed: Path, request: pytest.FixtureRequest) -> Callable[[str], Outcome]:
    """What became of a file's tests, under other names."""
    here = (item for item in request.session.items if item.path == request.path)
    wanted = {item.callspec.params["name"] for item in here}
    known: dict[str, Outcome] = {}

    def look_up(name: str) -> Outcome:
        if name not in known:
            half = [other for other, group in HALVES.items() if group == HALVES[name] and other in wanted]
            known.update(_run(renamed, half))
        return known[name]

    return look_up


def _run(renamed: Path, names: list[str]) -> dict[str, Outcome]:
    source, report = renamed / "source", renamed / f"{HALVES[names[0]]}.xml"
    suite = [renamed / "venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "renamed_too"]
    suite += [f"--junitxml={report}", "-o", "junit_family=xunit1"]
    done = subprocess.run(
        [*suite, *(source / "tests/e2e" / name for name in names)],
        cwd=source, env=ENV, capture_output=True, text=True, timeout=1100, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1, 5), done.stdout[-6000:] + done.stderr[-2000:]
    found = {name: Outcome() for name in names}
    for case in ElementTree.parse(report).iter("testcase"):
        outcome = found[Path(case.get("file", "")).name]
        outcome.failed += [f"{case.get('name')}:\n{(part.text or '')[-3000:]}" for part in case if part.tag in FAILED]
        outcome.skipped += [part.get("message", "") for part in case if part.tag == "skipped"]
    return found


@pytest.mark.merge
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.xdist_group(group)) for name, group in HALVES.items()]
)
def test_the_suite_passes_with_every_plugin_renamed(outcomes: Callable[[str], Outcome], name: str):
    outcome = outcomes(name)
    assert not outcome.failed, "\n".join(outcome.failed)
    if missing := [why for why in outcome.skipped if re.search("engine|sandbox", why)]:
        pytest.skip("; ".join(missing))
