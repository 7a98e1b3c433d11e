"""The end-to-end suite runs the user's own command. Plugin names come from `name()`, so that it also passes when every
plugin is installed under another entry-point name (see test_renamed.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "tasks"
PREFIX = os.environ.get("BENCHFLOW_TEST_PREFIX", "")


@dataclass
class Done:
    """A finished command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(scope="session")
def name() -> Callable[[str], str]:
    """What a plugin is called in this environment."""
    return lambda plain: PREFIX + plain


@pytest.fixture(scope="session")
def examples() -> Path:
    return EXAMPLES


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("BENCHFLOW_", "PYTEST_"))}
    return {**kept, "HOME": str(tmp_path / "home"), "BENCHFLOW_CACHE": str(tmp_path / "cache"), "NO_COLOR": "1"}


@pytest.fixture
def command() -> list[str]:
    return [sys.executable, "-m", "benchflow_core.cli.main"]


@pytest.fixture
def bench(tmp_path: Path, env: dict[str, str], command: list[str]) -> Callable[..., Done]:
    """Run `bench` in an empty folder, with a clean home and cache."""
    (tmp_path / "home").mkdir(exist_ok=True)

    def run(*args: str | Path, cwd: Path = tmp_path, more: dict[str, str] | None = None, timeout: float = 120) -> Done:
        argv = [*command, *map(str, args)]
        done = subprocess.run(
            argv, cwd=cwd, env={**env, **(more or {})}, capture_output=True, text=True, timeout=timeout, check=False
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def result_of(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """The one `result.json` below a job, with its folder under `dir`."""

    def read(job: Path = tmp_path / "jobs") -> dict[str, Any]:
        found = [p for p in job.glob("**/result.json") if "attempts" not in p.parts]
        assert len(found) == 1, found
        return {**json.loads(found[0].read_text()), "dir": found[0].parent}

    return read
