"""The core names no backend: every plugin is installed under another entry-point name, and this suite still passes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PREFIX = "x-"
_EP_GROUP = re.compile(r'^\[project\.entry-points\."benchflow\.\w+"\]$')
_EP = re.compile(r"^([\w.+-]+)( = )")


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


@pytest.mark.slow
@pytest.mark.timeout(2000)
@pytest.mark.skipif(bool(os.environ.get("BENCHFLOW_TEST_PREFIX")), reason="already inside")
def test_the_suite_passes_with_every_plugin_renamed(tmp_path):
    uv = ROOT / ".venv" / "bin" / "uv"
    source = tmp_path / "source"
    keep = shutil.ignore_patterns(".venv", ".git", "__pycache__", "jobs", "dist", "site", ".*_cache")
    shutil.copytree(ROOT, source, ignore=keep, symlinks=True)
    packages = [p.parent for p in source.glob("plugins/*/*/pyproject.toml")]
    assert sum(rename(p / "pyproject.toml") for p in packages) >= 7
    assert rename(source / "pyproject.toml") >= 1
    venv = tmp_path / "venv"
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, venv], check=True)
    install = [uv, "pip", "install", "-q", "--compile-bytecode", "-c", ROOT / "constraints.txt"]
    install += ["--python", venv / "bin/python"]
    # One environment to build in for all of them: this one.
    subprocess.run([*install, "hatchling", "editables"], check=True)
    wanted = [f"{source}[testing]", str(source / "bundle"), *map(str, packages)]
    subprocess.run([*install, "--no-build-isolation", *wanted, "pytest-timeout", "pytest-xdist"], check=True)
    names = subprocess.run(
        [venv / "bin/bench", "plugins", "list", "--json"], capture_output=True, text=True, check=True
    )
    assert '"oracle"' not in names.stdout
    options = ["-q", "--dist", "loadgroup", "-o", f"cache_dir={tmp_path}/cache", "-m", "renamed_too"]
    suite = [venv / "bin/python", "-m", "pytest", *options, source / "tests/e2e"]
    env = {**os.environ, "BENCHFLOW_TEST_PREFIX": PREFIX}
    kept = {"cwd": source, "env": env, "capture_output": True, "text": True, "timeout": 1800, "check": False}
    done = subprocess.run([*suite, "-n", "2"], **kept)
    if done.returncode == 1:  # as in CI: what failed beside everything else gets one more try
        done = subprocess.run([*suite, "-n", "1", "--last-failed", "--last-failed-no-failures=none"], **kept)
    assert done.returncode == 0, done.stdout[-6000:]
    assert " passed" in done.stdout
